"""Write a file so that its final name holds all of it or nothing."""

import contextlib
import errno
import os
import shlex
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pttool.errors import UnavailableError, UsageError


def check_writable(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work is done, an output that can't be written or must not be replaced.

    Raises UsageError, naming the path, for a folder, a missing parent, or an existing file without
    `force` or one of the `inputs`; UnavailableError for a parent that can't be written.
    """
    try:
        is_folder = path.is_dir()
        path.exists()
    except OSError as error:  # as a name that is too long
        raise UsageError(f"{path}: {error.strerror}", "choose another name") from error
    if is_folder:
        raise UsageError(f"{path}: is a folder", "give a file name to write to")
    parent = _resolved(path).parent
    if not parent.is_dir():
        shown = shlex.quote(str(path.parent))
        raise UsageError(f"{path}: there is no folder {parent}", f"make it first: mkdir -p {shown}")
    if path.exists() and not _is_device(path):
        if any(given.exists() and given.samefile(path) for given in inputs):
            raise UsageError(f"{path}: is an input", "write to another file")
        if not force:
            raise UsageError(f"{path}: already exists", "--force replaces it")
    if not _is_device(path) and not os.access(parent, os.W_OK | os.X_OK):
        raise UnavailableError(f"{path}: no permission to write in {parent}", "write elsewhere")


@contextlib.contextmanager
def complete_or_absent(path: Path, like: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a binary file that takes the name `path` only when the block ends without an error.

    A temporary file in the same folder, flushed and synced, then renamed; the mode of a replaced
    file is kept, else a new one has the mode of the file that it is made from, `like`. A link is
    followed. A device or pipe is written directly.
    """
    if _is_device(path):
        with path.open("wb") as stream:
            yield stream
        return
    target = _resolved(path)
    descriptor, name = tempfile.mkstemp(prefix=".pttool-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.chmod(name, _mode_for(target, like))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on the disk. Raises OSError."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # nothing to sync on this file system
            raise
    finally:
        os.close(file)


@contextlib.contextmanager
def written(path: Path, like: Path | None = None) -> Iterator[BinaryIO]:
    """As `complete_or_absent`; raises UnavailableError for what the system refuses, as no room."""
    with explained(path), complete_or_absent(path, like) as stream:
        yield stream


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise UnavailableError, naming a new file or folder, for what the system refuses."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnavailableError(
            f"{path}: {error.strerror}", "nothing was written: make room or write elsewhere"
        ) from error


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11 raises RuntimeError for a loop of links
        raise UsageError(f"{path}: leads nowhere: {error}", "choose another name") from error


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _mode_for(target: Path, like: Path | None) -> int:
    for file in (target, like):
        # What stands for a pipe or standard input has no mode that anybody chose.
        if file is not None and file.parts[1:2] != ("dev",) and file.is_file():
            return stat.S_IMODE(file.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
