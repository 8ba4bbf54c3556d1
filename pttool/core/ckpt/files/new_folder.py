"""A folder of files that appears complete or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pttool.errors import UnavailableError, UsageError


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that takes the name `path` only when the block ends without an error.

    Until then it lies beside it under another name. Raises UsageError for a path that exists (but
    an empty folder may), or has no parent; UnavailableError for a disk that takes nothing.
    """
    parent = path.resolve().parent
    if not parent.is_dir():
        raise UsageError(f"{path}: there is no folder {parent}", "make it first")
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise UsageError(f"{path}: already exists", "give the name of a new folder")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=".pttool-", dir=parent))
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}", "write elsewhere") from error
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        temporary.rename(path)
    except OSError as error:
        hint = "nothing was written: make room or write elsewhere"
        raise UnavailableError(f"{path}: {error.strerror}", hint) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
