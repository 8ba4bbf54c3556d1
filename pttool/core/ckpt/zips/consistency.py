"""Whether the headers beside a zip's payloads say what its directory says."""

import struct
from collections.abc import Iterator

from pttool.core.ckpt.files.payload import opened, read_at
from pttool.core.ckpt.files.words import listed, quoted
from pttool.core.ckpt.zips import layout as fmt
from pttool.core.ckpt.zips.directory import Directory, read_local
from pttool.core.ckpt.zips.layout import Entry, Local
from pttool.errors import InputError

_GAPS_LISTED = 3


def consistency(directory: Directory) -> tuple[str, ...]:
    """Return, in words, where local headers contradict the directory, and bytes of no record.

    Reads every local header and data descriptor, no payload. A zip that says two things is read
    by one program as one file and by another as another. Raises InputError when reading fails.
    """
    reasons: dict[str, list[str]] = {}
    gaps = []
    position = directory.start
    with opened(directory.path) as file:
        for entry in sorted(directory.entries, key=lambda entry: entry.header_offset):
            if entry.header_offset > position:
                gaps.append((position, entry.header_offset - position))
            try:
                local = read_local(file, entry, directory)
            except InputError:
                reasons.setdefault("no usable local header", []).append(entry.name)
                position = entry.header_offset + fmt.LOCAL.size
                continue
            found, stop = compared(file, entry, local, directory)
            for reason in found:
                reasons.setdefault(reason, []).append(entry.name)
            if entry.header_offset < position:
                reasons.setdefault("overlaps the record before it", []).append(entry.name)
            position = max(position, stop)
    if directory.directory_offset > position:
        gaps.append((position, directory.directory_offset - position))
    shown = [f"{count} bytes at {offset} belong to no record" for offset, count in gaps]
    if len(gaps) > _GAPS_LISTED:
        shown[_GAPS_LISTED:] = [f"{len(gaps) - _GAPS_LISTED} more such places"]
    return (*(f"{listed(names, quoted)}: {reason}" for reason, names in reasons.items()), *shown)


def find_descriptor(file: int, entry: Entry, local: Local, directory: Directory) -> int | None:
    """Return how many bytes the data descriptor behind a payload has, or None.

    Any of the four forms of APPNOTE 4.3.9: with a signature or without, 64-bit or 32-bit.
    """
    stop = local.payload_offset + entry.stored_bytes
    behind = read_at(file, stop, 24, directory.path)
    crc = struct.pack("<L", entry.crc32)
    sizes = (entry.stored_bytes, entry.size_bytes)
    forms = [crc + struct.pack("<2Q", *sizes)]
    if max(sizes) < fmt.SEE_ZIP64:
        forms.append(crc + struct.pack("<2L", *sizes))
    for form in (*(fmt.DESCRIPTOR_SIGNATURE + form for form in forms), *forms):
        if behind.startswith(form):
            return len(form)
    return None


def compared(file: int, entry: Entry, local: Local, directory: Directory) -> tuple[list[str], int]:
    """Return where a local header differs from its entry, and the offset where the record ends."""
    stop = local.payload_offset + entry.stored_bytes
    reasons = list(_differences(entry, local))
    if local.flags & fmt.HAS_DESCRIPTOR:
        descriptor = find_descriptor(file, entry, local, directory)
        if descriptor is None:
            reasons.append("the data descriptor is missing or contradicts the directory")
        stop += descriptor or 0
    return reasons, stop


def _differences(entry: Entry, local: Local) -> Iterator[str]:
    # With a data descriptor the header was written before these were known: zeros say nothing.
    is_later = bool(local.flags & fmt.HAS_DESCRIPTOR)
    for what, here, there, may_be_zero in (
        ("another name", local.raw_name, entry.raw_name, False),
        ("other flags", local.flags, entry.flags, False),
        ("another method", local.method, entry.method, False),
        ("another checksum", local.crc32, entry.crc32, is_later),
        ("another stored size", local.stored_bytes, entry.stored_bytes, is_later),
        ("another size", local.size_bytes, entry.size_bytes, is_later),
    ):
        if here != there and not (may_be_zero and here == 0):
            yield f"the local header has {what}"
