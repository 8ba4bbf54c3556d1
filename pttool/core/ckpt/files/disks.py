"""Whether a disk has room for a new file, and that a change of a folder is on it."""

import errno
import os
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


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on the disk. Raises OSError."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to sync here
            raise
    finally:
        os.close(file)
