"""The corpus on disk, written once a session, and the real files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.ckpt.corpus import write_all
from tests.core.ckpt.real_files import NotThereError, fetch


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every checkpoint of the corpus by its kind's name."""
    return write_all(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def real_file() -> Callable[[str], Path]:
    """Return the path of a real file by its name in REAL_FILES; without it the test is skipped."""

    def get(name: str) -> Path:
        try:
            return fetch(name)
        except NotThereError as missing:
            pytest.skip(str(missing))

    return get
