"""The bytes of a journal: what a file held where it is about to be changed.

Layout, little-endian: MAGIC; the file's size and the number of changes; offset and length of each;
all old bytes; all new bytes; the CRC-32 of everything before it.
"""

import itertools
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"pttool journal 1"
_HEAD = struct.Struct(f"<{len(MAGIC)}s2Q")
_PLACE = struct.Struct("<2Q")
_CHECKSUM = struct.Struct("<L")


def journal_path(target: Path) -> Path:
    """Return where the journal of a file is while the file is being changed."""
    return target.with_name(f".{target.name}.pttool-journal")


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes at an offset, before and after: of one length."""

    offset: int
    old: bytes
    new: bytes

    def could_be(self, found: bytes) -> bool:
        """Return whether these bytes are old, new, or a write of new over old that was cut."""
        if found in (self.old, self.new):
            return True
        pairs = zip(found, self.old, self.new, strict=False)
        return len(found) == len(self.old) and all(is_ in (was, to_be) for is_, was, to_be in pairs)


@dataclass(frozen=True, slots=True)
class Journal:
    """All changes that one run makes to a file of `size_bytes`."""

    size_bytes: int
    changes: tuple[Change, ...]


def encode(journal: Journal) -> bytes:
    """Return the bytes of a journal."""
    parts = [_HEAD.pack(MAGIC, journal.size_bytes, len(journal.changes))]
    parts += [_PLACE.pack(change.offset, len(change.old)) for change in journal.changes]
    parts += [change.old for change in journal.changes]
    parts += [change.new for change in journal.changes]
    body = b"".join(parts)
    return body + _CHECKSUM.pack(zlib.crc32(body))


def decode(data: bytes) -> Journal | None:
    """Return the journal that these bytes are, or None where they are cut or of something else."""
    body, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
    if len(body) < _HEAD.size or checksum != _CHECKSUM.pack(zlib.crc32(body)):
        return None
    magic, size, count = _HEAD.unpack_from(body)
    at = _HEAD.size + count * _PLACE.size
    if magic != MAGIC or at > len(body):
        return None
    places = list(_PLACE.iter_unpack(body[_HEAD.size : at]))
    lengths = [length for _, length in places]
    if len(body) != at + 2 * sum(lengths):
        return None
    old = _cut(body, at, lengths)
    new = _cut(body, at + sum(lengths), lengths)
    changes = zip((offset for offset, _ in places), old, new, strict=True)
    return Journal(size, tuple(Change(*change) for change in changes))


def _cut(body: bytes, start: int, lengths: Sequence[int]) -> list[bytes]:
    stops = list(itertools.accumulate(lengths, initial=start))
    return [body[first:last] for first, last in itertools.pairwise(stops)]
