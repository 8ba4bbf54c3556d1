"""The members of a tar archive, without unpacking any: torch wrote tars before version 0.2.

Layout of a header: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html (ustar).
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pttool.core.ckpt.files.payload import damaged, opened, read_at
from pttool.core.ckpt.types import Record

BLOCK_BYTES = 512
MOST_MEMBERS = 10_000
REGULAR = (b"0", b"\0", b"7")


def read_members(path: Path) -> tuple[Record, ...]:
    """Return the regular files in a tar, in order.

    Raises InputError for a file that is no tar, or one that ends within a member.
    """
    with opened(path) as file:
        members = tuple(islice(members_of(file, path), MOST_MEMBERS))
        size = os.fstat(file).st_size
    if not members:
        raise damaged(path, "is no tar archive")
    missing = max(member.offset + member.size_bytes for member in members) - size
    if missing > 0:
        raise damaged(path, f"cut short: {missing} bytes of the tar are missing")
    return members


def members_of(file: int, path: Path) -> Iterator[Record]:
    """Yield the regular files of a tar until a block that is no header; the last may be cut.

    A block of zeros ends an archive, so a file of zeros has no members. Raises InputError for an
    error of the disk.
    """
    at = 0
    while True:
        header = read_at(file, at, BLOCK_BYTES, path)
        size = _size(header)
        if size is None:
            return
        if header[156:157] in REGULAR:
            name = header[:100].split(b"\0", 1)[0].decode("utf-8", "replace")
            yield Record(name, path, at + BLOCK_BYTES, size, size)
        at += BLOCK_BYTES + (size + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES


def _size(header: bytes) -> int | None:
    """Return the size of the member behind a header, or None for a block that is no header."""
    if len(header) < BLOCK_BYTES or not header[0]:
        return None
    # The checksum is that of the header with eight spaces in its own place.
    if _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * 0x20:
        return None
    return _number(header[124:136])


def _number(field: bytes) -> int | None:
    """Return a number in octal text or, as GNU tar writes large ones, in binary after 0x80."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:], "big")
        return number if number < 1 << 60 else None
    digits = field.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        return None
    return int(digits, 8)
