"""Files of the output folder, which appear complete: written aside, synced, renamed in an order."""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pttool.core.features.ranks import Shard
from pttool.core.files import explained, sync_folder
from pttool.errors import UnavailableError


@contextlib.contextmanager
def staged(out: Path, shard: Shard) -> Iterator[Path]:
    """Yield a hidden folder in `out`, for files that are not complete yet; it goes in the end.

    Its name says whose it is, and a lock, where the file system has locks, that it is in use.

    Raises UnavailableError for what the system refuses.
    """
    prefix = f".pttool-{shard.number}-of-{shard.count}-"
    with writing(out):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=out))
        try:
            with _lock(folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def place(staging: Path, out: Path, names: Sequence[str]) -> None:
    """Sync files of a staging folder, then give them their names in `out`, in this order."""
    for name in names:  # together: what one sync writes, the next needn't
        with (staging / name).open("r+b") as stream:
            os.fsync(stream.fileno())
    for name in names:
        target = out / name
        target.parent.mkdir(exist_ok=True)
        os.replace(staging / name, target)
        sync_folder(target.parent)


def place_text(out: Path, shard: Shard, name: str, text: str) -> None:
    """Write a file of `out`, complete or not at all. Raises as `staged` does."""
    with staged(out, shard) as folder:
        (folder / name).write_text(text, encoding="utf-8")
        place(folder, out, [name])


def remove_abandoned(out: Path, shard: Shard) -> None:
    """Remove what killed processes have left: of this shard's, and of those no longer shared so.

    What a process is known to be at work on stays.
    """
    for path in out.glob(".pttool-*"):
        match = re.match(r"\.pttool-(\d+)-of-(\d+)-", path.name)
        if match and (int(match[1]) == shard.number or int(match[2]) != shard.count):
            with contextlib.suppress(BlockingIOError, FileNotFoundError), _lock(path):
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, where there are any; raises BlockingIOError if another has it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # as on some network drives
            pass
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise UnavailableError, naming the folder, for what the system refuses."""
    try:
        with explained(path):
            yield
    except UnavailableError as error:
        if not isinstance(error.__cause__, OSError):  # of what was done in between
            raise
        hint = "make room, and give the same command again: finished parts stay"
        raise UnavailableError(error.message, hint) from error
