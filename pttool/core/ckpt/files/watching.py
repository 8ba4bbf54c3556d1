"""Notice that a file is changed by another process while it is read."""

import os
from pathlib import Path

from pttool.errors import UnavailableError

Version = tuple[int, int, int]


def version(path: Path) -> Version | None:
    """Return what changes when a file does, or None for one that isn't there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def changing(path: Path) -> UnavailableError:
    """Return what to say of a file that was changed meanwhile."""
    what = "was changed by another process while it was read"
    return UnavailableError(f"{path}: {what}", "try again when that is done")
