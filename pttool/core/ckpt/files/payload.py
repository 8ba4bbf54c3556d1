"""The bytes of a record: bounded, streamed, inflated on the way, and never more than it claims."""

import contextlib
import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.types import Record
from pttool.errors import InputError

BLOCK_BYTES = 1 << 20
# More at once makes zlib.crc32 no faster, and a smaller buffer stays in the processor's cache.
CHECKSUM_BLOCK_BYTES = 1 << 18
_DEFLATED_BLOCK_BYTES = 1 << 16
_COPY_AGAIN = "copy or download it again"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """Yield a descriptor of a regular file, to read at any offset.

    Raises InputError for what can't be opened, a folder, or a pipe (which has no offsets).
    """
    try:
        # A pipe that nobody writes to would block before its kind is known.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check the path of the file") from error
    except ValueError as error:  # a NUL in the path
        raise InputError(f"{str(path)!r}: is no name of a file", "check its path") from error
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder", "give the name of a file in it")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: is not a regular file", "save it to a file first")
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Yield the bytes of a regular file. Raises InputError as `opened`, and for an empty one."""
    with opened(path) as file:
        try:
            whole = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise damaged(path, "is an empty file") from error
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", _COPY_AGAIN) from error
    with whole:
        yield whole


def damaged(path: Path, what: str) -> InputError:
    """Return the error for a file that contradicts itself."""
    return InputError(f"{path}: {what}", _COPY_AGAIN)


def read_at(file: int, offset: int, count: int, path: Path) -> bytes:
    """Read `count` bytes at `offset`: fewer only where the file ends. Raises InputError."""
    parts = []
    while count > 0:
        try:
            part = os.pread(file, min(count, 1 << 30), offset)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", _COPY_AGAIN) from error
        if not part:
            break
        parts.append(part)
        offset += len(part)
        count -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_record(record: Record, limit: int) -> bytes:
    """Return all bytes of a record that holds at most `limit`.

    Raises InputError for a larger one, and as `blocks` does.
    """
    if record.size_bytes > limit:
        raise InputError(
            f"{record.file}: {quoted(record.name)} holds {record.size_bytes} bytes, "
            f"more than the {limit} that such a record can need",
            "this is no usual checkpoint: get it from its source again",
        )
    return b"".join(blocks(record, size=max(record.size_bytes, 1)))


def blocks(
    record: Record, *, start: int = 0, stop: int | None = None, size: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop` of a record, inflated, at most `size` at a time.

    Inflating stops one byte past what the record claims to hold. Raises InputError, naming file
    and record, when the file ends early, a deflated stream is broken or of another length than
    claimed, or the record ends before `stop`.
    """
    stop = record.size_bytes if stop is None else stop
    if not 0 <= start <= stop <= record.size_bytes:
        what = f"holds {record.size_bytes} bytes; {start} to {stop} are asked for"
        raise damaged(record.file, f"{quoted(record.name)} {what}")
    with opened(record.file) as file:
        check_extent(file, record)
        if record.is_deflated:
            yield from _inflated_range(file, record, start, stop, size)
            return
        while start < stop:
            count = min(size, stop - start)
            block = read_at(file, record.offset + start, count, record.file)
            if len(block) < count:
                raise _ends_early(record)
            yield block
            start += count


def crc32(record: Record) -> int:
    """Return the CRC-32 of a record's bytes, inflated. Raises InputError as `blocks` does."""
    checksum = 0
    if record.is_deflated:
        for block in blocks(record):
            checksum = zlib.crc32(block, checksum)
        return checksum
    left, offset = record.size_bytes, record.offset
    buffer = memoryview(bytearray(min(CHECKSUM_BLOCK_BYTES, max(left, 1))))
    with opened(record.file) as file:
        check_extent(file, record)
        while left:
            try:
                count = os.preadv(file, [buffer[: min(left, len(buffer))]], offset)
            except OSError as error:
                raise damaged(record.file, f"{quoted(record.name)}: {error.strerror}") from error
            if not count:
                raise _ends_early(record)
            checksum = zlib.crc32(buffer[:count], checksum)
            left -= count
            offset += count
    return checksum


def check_extent(file: int, record: Record) -> None:
    """Raise InputError where a record's claims can't be true of the file it is in."""
    if record.offset + record.stored_bytes > os.fstat(file).st_size:
        raise _ends_early(record)
    if not record.is_deflated and record.size_bytes != record.stored_bytes:
        what = f"claims {record.size_bytes} bytes and stores {record.stored_bytes}"
        raise damaged(record.file, f"{quoted(record.name)} {what}")


def _inflated_range(file: int, record: Record, start: int, stop: int, size: int) -> Iterator[bytes]:
    position = 0
    for block in _inflated(file, record, size):
        first, last = max(start - position, 0), stop - position
        position += len(block)
        if position > start and first < last:
            yield block[first:last]
        if position >= stop and stop < record.size_bytes:
            return


def _inflated(file: int, record: Record, size: int) -> Iterator[bytes]:
    """Yield a deflated record whole; what it claims is checked when it ends."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    consumed = total = 0
    while not inflater.eof:
        data = inflater.unconsumed_tail
        if not data:
            count = min(_DEFLATED_BLOCK_BYTES, record.stored_bytes - consumed)
            data = read_at(file, record.offset + consumed, count, record.file)
            consumed += len(data)
        try:
            block = inflater.decompress(data, min(size, record.size_bytes + 1 - total))
        except zlib.error as error:
            reason = f"{quoted(record.name)} can't be inflated: {error}"
            raise damaged(record.file, reason) from error
        total += len(block)
        if total > record.size_bytes or (not data and not block):
            break
        if block:
            yield block
    if total != record.size_bytes or not inflater.eof:
        extent = "more" if total > record.size_bytes else f"{total}"
        what = f"{quoted(record.name)} claims {record.size_bytes} bytes and inflates to {extent}"
        raise damaged(record.file, what)
    if inflater.unused_data or consumed < record.stored_bytes:
        raise damaged(record.file, f"{quoted(record.name)} goes on after its deflated bytes end")


def _ends_early(record: Record) -> InputError:
    return damaged(record.file, f"cut short: it ends before {quoted(record.name)} does")
