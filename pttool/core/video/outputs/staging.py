"""Write a video's files under temporary names, then give all of them their names."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pttool.core.video.outputs.journal import Identity, identity
from pttool.core.video.outputs.refused import writing

PART = ".part"  # what looks for pictures in all folders doesn't find half of one


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield a hidden folder in `folder`, which is made, for files that are not complete yet.

    It is locked, so that others know it is in use, and gone when the block ends. Raises
    OutputError for what the system refuses.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".pttool-new-", dir=folder))
        descriptor = os.open(made, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Others look at this name alone: they can't see the folder before it is locked.
        staging = made.with_name(made.name.replace("-new-", "-part-", 1))
        made.rename(staging)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(descriptor)


def put_in_place(staging: Path, target: Path, stale: Iterable[Path]) -> dict[str, Identity]:
    """Sync and rename the files NAME.part to `target`/NAME; return what each is, by its name.

    The `stale` files are removed first: the folder never holds a mixture. Raises OutputError
    for what the system refuses.
    """
    with writing(target):
        return _put_in_place(staging, target, stale)


def _put_in_place(staging: Path, target: Path, stale: Iterable[Path]) -> dict[str, Identity]:
    files = sorted(staging.glob(f"*{PART}"))
    for file in files:  # together: what one sync writes, the next needn't
        with file.open("r+b") as stream:
            os.fsync(stream.fileno())
    target.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.unlink(missing_ok=True)
    placed = {}
    for file in files:
        final = target / file.name.removesuffix(PART)
        os.replace(file, final)
        placed[final.name] = identity(final)
    return placed


def remove_abandoned(folder: Path) -> None:
    """Remove what processes that are no more have left in `folder`."""
    for path in folder.glob(".pttool-part-*"):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:  # gone, or somebody else's
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # in use
            continue
        else:
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)
