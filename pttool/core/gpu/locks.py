"""Book a GPU for a job: a lock that the kernel gives back when the job dies, however it dies."""

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pttool.errors import UnavailableError

# Folders of the host in which anyone may make a file but nobody remove another's. Not /dev/shm:
# logind empties it of a user's files when the user logs out, while jobs go on.
FOLDERS = (Path("/run/lock"), Path("/tmp"))
RETRY_S = 0.02
# Everyone may open a lock file, and so lock it, but only its owner write it. The sticky bit keeps
# what cleans up folders from removing it (XDG Base Directory Specification; tmpfiles.d(5)).
MODE = 0o1644


@dataclass(frozen=True, slots=True)
class Booking:
    """GPUs locked for one job: UUIDs, and a descriptor each whose lock lasts while it is open."""

    uuids: tuple[str, ...]
    descriptors: tuple[int, ...]

    def keep_over_exec(self) -> None:
        """Leave the locks to the program that takes this process's place, and to its children."""
        for descriptor in self.descriptors:
            os.set_inheritable(descriptor, True)

    def release(self) -> None:
        """Give the GPUs back."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def book(uuids: Sequence[str], count: int) -> Booking | None:
    """Lock the first `count` of these GPUs that nobody has locked; all or none.

    Raises UnavailableError where there is no safe folder for lock files, or one can't be opened.
    """
    held: dict[str, int] = {}
    for uuid in uuids:
        if len(held) == count:
            break
        descriptor = _try_lock(uuid)
        if descriptor is not None:
            held[uuid] = descriptor
    booking = Booking(tuple(held), tuple(held.values()))
    if len(held) == count:
        return booking
    booking.release()
    return None


def unlocked(uuids: Sequence[str]) -> list[str]:
    """Return which of these GPUs nobody has locked.

    Only within `picking_lock`: a look takes each lock. Raises UnavailableError as `book` does.
    """
    free: list[str] = []
    for uuid in uuids:
        descriptor = _try_lock(uuid)
        if descriptor is not None:
            os.close(descriptor)
            free.append(uuid)
    return free


@contextlib.contextmanager
def picking_lock(deadline: float | None) -> Iterator[bool]:
    """Be the only one on this host that picks GPUs; yield whether it is so by the deadline.

    A process that locks some and gives them back, since they are too few, would else make another
    one fail. The deadline is one of time.monotonic(), None for none.
    """
    descriptor = _try_lock("picking")
    while descriptor is None and (deadline is None or time.monotonic() < deadline):
        time.sleep(RETRY_S)
        descriptor = _try_lock("picking")
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def lock_path(name: str) -> Path:
    """Return the lock file of a GPU, the same one for all users of this host."""
    safe = re.sub(r"[^\w-]", "_", name, flags=re.ASCII)
    return _folder() / f"pttool-gpu-{safe}.lock"


def _folder() -> Path:
    """Return the first folder that everyone may write to and that is sticky."""
    for folder in FOLDERS:
        with contextlib.suppress(OSError):
            mode = folder.stat().st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & stat.S_IWOTH:
                return folder
    names = " or ".join(map(str, FOLDERS))
    raise UnavailableError(
        f"there is no safe folder for the locks of GPUs: {names}",
        "one must be sticky and open to all: sudo chmod 1777 /tmp",
    )


def _try_lock(name: str) -> int | None:
    """Return a descriptor that holds the lock, or None where another process does."""
    path = lock_path(name)
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # of a file that was removed meanwhile, where nobody looks


def _opened(path: Path) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        # First without O_CREAT: with it, Linux refuses another user's file in a sticky folder
        # (fs.protected_regular).
        with contextlib.suppress(FileNotFoundError):
            return _regular(os.open(path, flags), path)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, MODE)
            os.fchmod(descriptor, MODE)  # whatever the umask
            return descriptor
        return _regular(os.open(path, flags), path)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}", "remove this lock file") from error


def _regular(descriptor: int, path: Path) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise UnavailableError(f"{path}: is no regular file", "remove it: it is a lock's name")


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
