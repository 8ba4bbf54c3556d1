"""A folder of files that appears complete or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pttool.core.files import explained, sync_folder
from pttool.errors import UnavailableError, UsageError


def check_new_folder(path: Path) -> None:
    """Refuse, before any work is done, a folder that can't be made.

    Raises UsageError for a path that exists (but an empty folder may), has no parent or is no name;
    UnavailableError for a parent that can't be written.
    """
    try:
        parent = path.resolve().parent
        is_taken = path.is_symlink() or (path.exists() and not _is_empty_folder(path))
        has_parent = parent.is_dir()
    except (OSError, RuntimeError) as error:  # 3.11: RuntimeError for a loop of links
        reason = error.strerror if isinstance(error, OSError) else "leads nowhere"
        raise UsageError(f"{path}: {reason}", "choose another name") from error
    if not has_parent:
        raise UsageError(f"{path}: there is no folder {parent}", "make it first")
    if is_taken:
        raise UsageError(f"{path}: already exists", "give the name of a new folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UnavailableError(f"{path}: no permission to write in {parent}", "write elsewhere")


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that takes the name `path` only when the block ends without an error.

    Until then it lies beside it under another name. Raises as `check_new_folder` does, and
    UnavailableError for what the system refuses, as no room.
    """
    check_new_folder(path)
    parent = path.resolve().parent
    with explained(path):
        temporary = Path(tempfile.mkdtemp(prefix=".pttool-", dir=parent))
        try:
            yield temporary
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o777 & ~umask)
            sync_folder(temporary)
            temporary.rename(path)
            sync_folder(parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
