"""The end of a zip: how many records it claims, and where it claims that they are listed."""

from dataclasses import dataclass, replace
from pathlib import Path

from pttool.core.ckpt.files.payload import damaged, read_at
from pttool.core.ckpt.zips import layout as fmt
from pttool.errors import InputError

# Of what a checkpoint could need: 50,000 tensors take 5 MB. They bound the memory of a lie.
LARGEST_DIRECTORY = 1 << 26
MOST_RECORDS = 300_000


@dataclass(frozen=True, slots=True)
class End:
    """What the end record claims; the end records lie from `offset` to `stop`.

    All offsets count from the start of the file.
    """

    count: int
    directory_bytes: int
    directory_offset: int
    offset: int
    stop: int
    comment: bytes
    is_split: bool
    is_contradicted: bool = False


def read_end(file: int, first: int, last: int, path: Path) -> End:
    """Find and read the end record, and the zip64 one, of a zip between two offsets of a file.

    Raises InputError for a file without one, or whose claims about the directory can't be true.
    """
    size = last - first
    tail_bytes = min(size, fmt.LOCATOR.size + fmt.END.size + fmt.LONGEST_COMMENT)
    tail = read_at(file, last - tail_bytes, tail_bytes, path)
    # Like miniz, the last signature with room for an end record behind it.
    at = tail.rfind(fmt.END_SIGNATURE, 0, max(len(tail) - fmt.END.size + 4, 0))
    if at < 0:
        if not read_at(file, first, 4, path).startswith((fmt.LOCAL_SIGNATURE, fmt.END_SIGNATURE)):
            raise damaged(path, "is not a zip: it has no end record")
        raise damaged(path, f"cut short: the zip's end record is missing ({size} bytes here)")
    _, disk, first_disk, here, count, length, offset, comment = fmt.END.unpack_from(tail, at)
    start = last - tail_bytes + at
    text = tail[at + fmt.END.size :][:comment]
    end = End(
        count, length, first + offset, start, start + fmt.END.size + len(text), text,
        is_split=disk != first_disk or here != count,
    )  # fmt: skip
    locator_at = at - fmt.LOCATOR.size
    if locator_at >= 0 and tail.startswith(fmt.LOCATOR_SIGNATURE, locator_at):
        _, _, wide_at, disks = fmt.LOCATOR.unpack_from(tail, locator_at)
        end = _widened(file, end, first, wide_at, path)
        end = replace(end, is_split=end.is_split or disks != 1)
    _check_claims(end, path)
    return end


def _widened(file: int, end: End, start: int, offset: int, path: Path) -> End:
    """Return what the zip64 end record says instead, at an `offset` in a zip from `start` on."""
    offset += start
    raw = read_at(file, offset, fmt.END64.size, path) if offset < end.offset else b""
    if len(raw) < fmt.END64.size or not raw.startswith(fmt.END64_SIGNATURE):
        raise damaged(path, "the zip64 end record is not where the zip says")
    _, follow, _, _, disk, first, here, count, length, place = fmt.END64.unpack(raw)
    agrees = (
        end.count in (count, 0xFFFF)
        and end.directory_bytes in (length, fmt.SEE_ZIP64)
        and end.directory_offset - start in (place, fmt.SEE_ZIP64)
        and offset + 12 + follow == end.offset - fmt.LOCATOR.size
    )
    return replace(
        end,
        count=count,
        directory_bytes=length,
        directory_offset=start + place,
        offset=offset,
        is_split=disk != first or here != count,
        is_contradicted=not agrees,
    )


def _check_claims(end: End, path: Path) -> None:
    """Compare the directory's claims with the file before anything is allocated for them."""
    if end.directory_offset + end.directory_bytes > end.offset:
        raise damaged(
            path,
            f"the zip says its directory is {end.directory_bytes} bytes at {end.directory_offset}, "
            f"but its end record is at {end.offset}",
        )
    if end.count * fmt.CENTRAL.size > end.directory_bytes:
        raise damaged(
            path,
            f"the zip says it has {end.count} records; its directory of {end.directory_bytes} "
            "bytes has no room for them",
        )
    if end.count > MOST_RECORDS or end.directory_bytes > LARGEST_DIRECTORY:
        raise InputError(
            f"{path}: the zip has {end.count} records in a directory of {end.directory_bytes} "
            "bytes, more than a checkpoint can need",
            f"at most {MOST_RECORDS} records are read",
        )
