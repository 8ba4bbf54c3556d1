"""Changing a few bytes of a large file: in a copy, or in place under a journal."""

import contextlib
import fcntl
import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pttool.core.ckpt.files.copying import copy_range
from pttool.core.ckpt.files.journal import Change, Journal, decode, encode, journal_path
from pttool.core.ckpt.files.payload import damaged, opened, read_at
from pttool.core.files import sync_folder, written
from pttool.errors import InputError, UnavailableError

# What is kept in memory of either side; a checkpoint's pickle takes some MB at most.
LARGEST_JOURNAL = 1 << 30


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes that replace as many others."""

    offset: int
    content: bytes


def patched_copy(source: Path, target: Path, patches: Sequence[Patch]) -> None:
    """Write a copy of `source` with the patches applied, copied in the kernel where it can be.

    `target` appears complete or not at all; a pipe is written in order. Raises InputError for a
    source that can't be read or is too short, UnavailableError for a target that can't be written.
    """
    with opened(source) as file, written(target, source) as stream:
        size = os.fstat(file).st_size
        ordered = _ordered(patches, size, source)
        if not stream.seekable():
            _copy_in_order(file, stream.fileno(), size, ordered, str(source))
            return
        # Whole, since some file systems then share the blocks instead of copying any.
        copy_range(file, stream.fileno(), 0, 0, size, name=str(source))
        for patch in ordered:
            _write_at(stream.fileno(), patch.offset, patch.content)


def apply_in_place(path: Path, patches: Sequence[Patch]) -> None:
    """Change bytes of a file so that a kill at any moment leaves what `recover` makes the old file.

    The old bytes are kept in a journal beside the file until the new ones are on the disk. What an
    interrupted run left is recovered first; a failure here is rolled back at once. Other names of
    the file (hard links) see the change. Raises UnavailableError while another process is at it,
    for a file or folder without permission, or a disk that fails; InputError for a file that ends
    before a patch does, and as `recover` does.
    """
    with _locked(path) as (file, target):
        _roll_back(file, target)
        size = os.fstat(file).st_size
        changes = tuple(_changes(file, _ordered(patches, size, path), path))
        if not changes:
            return
        journal = journal_path(target)
        with _explained(path):
            _write_journal(journal, encode(Journal(size, changes)))
            try:
                _write_all(file, [(change.offset, change.new) for change in changes])
            except BaseException:
                _write_all(file, [(change.offset, change.old) for change in changes])
                _remove(journal)
                raise
            _remove(journal)


def recover(path: Path) -> bool:
    """Give a file its old bytes back where a run of `apply_in_place` was cut; return whether.

    A journal that is itself incomplete means that the file wasn't touched: it is removed. Raises
    UnavailableError while another process changes the file, and InputError for a journal that
    belongs to another state of the file: nothing is written then.
    """
    if not os.path.lexists(journal_path(_resolved(path))):
        return False
    with _locked(path) as (file, target):
        return _roll_back(file, target)


def _ordered(patches: Sequence[Patch], size: int, path: Path) -> list[Patch]:
    ordered = sorted(patches, key=lambda patch: patch.offset)
    position = 0
    for patch in ordered:
        if patch.offset < position:
            raise ValueError(f"patches overlap at {patch.offset}")
        position = patch.offset + len(patch.content)
    if position > size:
        raise damaged(path, f"has {size} bytes; what is to be changed reaches to {position}")
    return ordered


def _copy_in_order(file: int, target: int, size: int, patches: list[Patch], name: str) -> None:
    position = 0
    for patch in (*patches, Patch(size, b"")):
        copy_range(file, target, position, position, patch.offset - position, name=name)
        left = memoryview(patch.content)
        while left:
            left = left[os.write(target, left) :]
        position = patch.offset + len(patch.content)


def _changes(file: int, patches: list[Patch], path: Path) -> Iterator[Change]:
    if 2 * sum(len(patch.content) for patch in patches) > LARGEST_JOURNAL // 2:
        raise InputError(f"{path}: too much of it would change in place", "write to another file")
    for patch in patches:
        old = read_at(file, patch.offset, len(patch.content), path)
        if len(old) < len(patch.content):
            raise damaged(path, "became shorter while it was read")
        if old != patch.content:
            yield Change(patch.offset, old, patch.content)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[tuple[int, Path]]:
    """Yield a descriptor of the file to write, which no other pttool changes, and its real path."""
    target = _resolved(path)
    with _explained(path):
        file = os.open(target, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise InputError(f"{path}: is not a regular file", "only such can be changed in place")
        with _explained(path):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file), os.stat(target)):
                raise UnavailableError(f"{path}: was just replaced", "try again")
        yield file, target
    finally:
        os.close(file)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # 3.11: RuntimeError for a loop of links
        raise InputError(f"{path}: leads nowhere: {error}", "check the path") from error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except BlockingIOError as error:
        message = f"{path}: another process is changing it"
        raise UnavailableError(message, "wait until it has finished") from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"{path}: {error.strerror}", "check the path of the file") from error
    except OSError as error:
        message = f"{path}: can't be changed in place: {error.strerror}"
        raise UnavailableError(message, "write to another file instead") from error


def _roll_back(file: int, target: Path) -> bool:
    path = journal_path(target)
    if not os.path.lexists(path):
        return False
    journal = _read_journal(path)
    if journal is not None:
        is_known = journal.size_bytes == os.fstat(file).st_size and all(
            change.could_be(read_at(file, change.offset, len(change.old), target))
            for change in journal.changes
        )
        if not is_known:
            raise InputError(
                f"{target}: the journal {path.name} is of another state of this file",
                f"if the file is whole, remove the journal: rm {shlex.quote(str(path))}",
            )
    with _explained(target):
        if journal is not None:
            _write_all(file, [(change.offset, change.old) for change in journal.changes])
        _remove(path)
    return journal is not None


def _read_journal(path: Path) -> Journal | None:
    if path.is_symlink():
        raise InputError(f"{path}: is a link, not a journal", "remove it")
    with opened(path) as file:
        size = os.fstat(file).st_size
        if size > LARGEST_JOURNAL:
            raise InputError(f"{path}: is too large for a journal", "remove it")
        return decode(read_at(file, 0, size, path))


def _write_journal(path: Path, data: bytes) -> None:
    """Write the journal and see that it is on the disk before anything else changes."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(file, [(0, data)])
        sync_folder(path.parent)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(file)


def _write_all(file: int, writes: Sequence[tuple[int, bytes]]) -> None:
    for offset, content in writes:
        _write_at(file, offset, content)
    os.fsync(file)


def _write_at(file: int, offset: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        written = os.pwrite(file, left, offset)
        offset += written
        left = left[written:]


def _remove(journal: Path) -> None:
    os.unlink(journal)
    sync_folder(journal.parent)
