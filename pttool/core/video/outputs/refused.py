"""What the system refuses to write, which ends a whole batch: the next video would fail too."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pttool.core.files import explained
from pttool.errors import UnavailableError


class OutputError(UnavailableError):
    """Frames can't be written: no room, no permission."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise OutputError, naming the file or folder, for what the system refuses."""
    try:
        with explained(path):
            yield
    except UnavailableError as error:
        hint = "make room or write elsewhere; --resume goes on with what is missing"
        raise OutputError(error.message, hint) from error
