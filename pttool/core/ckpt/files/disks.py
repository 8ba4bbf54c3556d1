"""Whether a disk has room for a new file."""

import shutil
from pathlib import Path

from pttool.errors import UnavailableError


def check_room(path: Path, size: int) -> None:
    """Raise UnavailableError where a disk hasn't room for a new file of `size` bytes."""
    if path.exists() and not path.is_file():  # a device or pipe
        return
    free = shutil.disk_usage(path.resolve().parent).free
    if size > free:
        what = f"{path}: needs {size:,} bytes, and {free:,} are free"
        raise UnavailableError(what, "make room or write elsewhere")
