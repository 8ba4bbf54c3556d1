"""The files that a verb writes: complete or absent, and what a disk refuses said in one line."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pttool.core.files import complete_or_absent
from pttool.errors import UnavailableError


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream that takes the name `path` once the block has ended without an error.

    Raises UnavailableError where the disk is full or lets nothing be written.
    """
    try:
        with complete_or_absent(path) as stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = "nothing was written: make room or write elsewhere"
        raise UnavailableError(f"{path}: {error.strerror}", hint) from error


def check_room(path: Path, size: int) -> None:
    """Raise UnavailableError where a disk hasn't room for a new file of `size` bytes."""
    if path.exists() and not path.is_file():  # a device or pipe
        return
    free = shutil.disk_usage(path.resolve().parent).free
    if size > free:
        what = f"{path}: needs {size:,} bytes, and {free:,} are free"
        raise UnavailableError(what, "make room or write elsewhere")
