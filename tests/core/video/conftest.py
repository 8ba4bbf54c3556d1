"""The torture set on disk, each file made when it is first asked for, and the real clips."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from tests.core.ckpt.real_files import NotThereError
from tests.core.video import oracle
from tests.core.video.real_clips import fetch
from tests.core.video.torture import KINDS

Torture = Callable[[str], Path]
Truth = Callable[[str], list[oracle.Shown]]


@pytest.fixture(scope="session")
def torture(tmp_path_factory: pytest.TempPathFactory) -> Torture:
    """Return the path of a file of the torture set by its kind's name."""
    folder = tmp_path_factory.mktemp("torture")
    os.environ.setdefault("SVT_LOG", "1")  # the AV1 encoder talks otherwise
    av.logging.set_level(None)

    @functools.cache
    def made(name: str) -> Path:
        path = folder / name
        KINDS[name].make(path)
        return path

    return made


@pytest.fixture(scope="session")
def truth(torture: Torture) -> Truth:
    """Return what a full sequential decode of a file of the torture set shows."""
    return functools.cache(lambda name: oracle.decode(torture(name)))


@pytest.fixture(scope="session")
def real_clip() -> Torture:
    """Return the path of a real clip by its name in CLIPS; without it the test is skipped."""

    def get(name: str) -> Path:
        try:
            return fetch(name)
        except NotThereError as missing:
            pytest.skip(str(missing))

    return get
