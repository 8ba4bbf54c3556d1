"""Copying bytes from file to file without carrying them through this process."""

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from pttool.core.ckpt.files.payload import check_extent, opened
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.types import Record
from pttool.errors import InputError

_CHUNK_BYTES = 1 << 26  # what one call is asked for
_WORTH_WRITING_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 20
# Below this a copy in the kernel costs more than it saves: it breaks the stream's buffering.
_WORTH_COPYING_BYTES = 1 << 16
# What says "not between these two files, or not on this system", as man 2 copy_file_range and
# sendfile list them. Anything else (no space, a broken disk) would fail the next way too.
_NOT_THIS_WAY = frozenset(
    (
        errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF,
        errno.EPERM, errno.ESPIPE, errno.ENOTSOCK, errno.ETXTBSY, errno.EOVERFLOW,
    )
)  # fmt: skip

# Moves up to so many bytes between two offsets, and returns how many it moved.
_Move = Callable[[int, int, int], int]


def copy_range(
    source: int,
    target: int,
    source_offset: int,
    target_offset: int,
    count: int,
    *,
    name: str = "the input",
) -> None:
    """Copy `count` bytes between two descriptors, in the kernel where it can.

    A pipe as target is written at its end, whatever `target_offset`; the target's own position is
    undefined afterwards. Raises InputError, naming the source `name`, when it ends early.
    """
    done = 0
    for make in (_kernel_copy, _sendfile, _read_and_write):
        move = make(source, target)
        while done < count:
            wanted = min(count - done, _CHUNK_BYTES)
            try:
                moved = move(source_offset + done, target_offset + done, wanted)
            except OSError as error:
                if error.errno not in _NOT_THIS_WAY or make is _read_and_write:
                    raise
                break
            if not moved:  # the end, or a file system that pretends so: the last way decides
                break
            _start_writing(target, target_offset + done, moved)
            done += moved
    if done < count:
        raise InputError(f"{name}: ends {count - done} bytes early", "copy or download it again")


def copy_record(stream: BinaryIO, record: Record, offset: int) -> None:
    """Copy the bytes of a record that is stored as it is to the `offset` where a stream is.

    Raises InputError for a file that ends early.
    """
    stream.flush()
    with opened(record.file) as source:
        check_extent(source, record)
        name = f"{record.file}: {quoted(record.name)}"
        copy_range(source, stream.fileno(), record.offset, offset, record.size_bytes, name=name)
    if stream.seekable():
        stream.seek(offset + record.size_bytes)


def is_worth_copying(record: Record, stream: BinaryIO) -> bool:
    """Whether `copy_record` can copy a record to a stream, and sooner than it would be written."""
    if record.is_deflated or record.size_bytes < _WORTH_COPYING_BYTES:
        return False
    try:
        stream.fileno()
    except io.UnsupportedOperation:
        return False
    return True


def of_size(blocks: Iterable[bytes], size: int, name: str) -> Iterator[bytes]:
    """Yield blocks, `size` bytes in all. Raises InputError, with the `name`, where they are not."""
    seen = 0
    for block in blocks:
        seen += len(block)
        if seen > size:
            break
        yield block
    if seen != size:
        what = f"{quoted(name)}: is not of the {size} bytes announced"
        raise InputError(what, "the input changed while it was read: try again")


def _kernel_copy(source: int, target: int) -> _Move:
    if not hasattr(os, "copy_file_range"):
        return _nothing

    def move(source_offset: int, target_offset: int, count: int) -> int:
        return os.copy_file_range(source, target, count, source_offset, target_offset)

    return move


def _sendfile(source: int, target: int) -> _Move:
    if not hasattr(os, "sendfile"):
        return _nothing

    def move(source_offset: int, target_offset: int, count: int) -> int:
        if _has_offsets(target):
            os.lseek(target, target_offset, os.SEEK_SET)
        return os.sendfile(target, source, source_offset, count)

    return move


def _read_and_write(source: int, target: int) -> _Move:
    has_offsets = _has_offsets(target)

    def move(source_offset: int, target_offset: int, count: int) -> int:
        block = os.pread(source, min(count, _BUFFER_BYTES), source_offset)
        left = memoryview(block)
        while left:
            if has_offsets:
                written = os.pwrite(target, left, target_offset)
            else:
                written = os.write(target, left)
            target_offset += written
            left = left[written:]
        return len(block)

    return move


def _start_writing(target: int, offset: int, count: int) -> None:
    """Let the disk write while the next part is copied: the fsync at the end then waits little.

    On Linux the advice starts the writing of what is dirty in the range (mm/fadvise.c), and frees
    the memory of what is written, so that a large file doesn't fill it.
    """
    if count >= _WORTH_WRITING_BYTES and hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # as of a pipe
            os.posix_fadvise(target, offset, count, os.POSIX_FADV_DONTNEED)


def _nothing(source_offset: int, target_offset: int, count: int) -> int:
    return 0


def _has_offsets(target: int) -> bool:
    try:
        os.lseek(target, 0, os.SEEK_CUR)
    except OSError:
        return False
    return True
