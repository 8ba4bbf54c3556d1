"""The directory of a zip: which records it says it holds, without a byte of their payloads.

Where readers of zips differ, what torch's (miniz) would read is what is read here; anything that
another reader could see otherwise is a warning.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pttool.core.ckpt.files.payload import damaged, opened, read_at
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.types import Record
from pttool.core.ckpt.zips import layout as fmt
from pttool.core.ckpt.zips.end import End, read_end
from pttool.core.ckpt.zips.layout import Entry as Entry
from pttool.core.ckpt.zips.layout import Local
from pttool.core.ckpt.zips.oddities import directory_oddities, name_oddities
from pttool.errors import InputError


@dataclass(frozen=True)
class Directory:
    """The records of a zip in the directory's order; `warnings` is what is odd, in words.

    The zip is `size_bytes` from `start` of a file; all offsets count from that of the file.
    """

    path: Path
    start: int
    size_bytes: int
    entries: tuple[Entry, ...]
    directory_offset: int
    directory_bytes: int
    comment: bytes
    warnings: tuple[str, ...]

    def find(self, name: str) -> Entry | None:
        """Return the entry of a name, the first of several, or None."""
        return self._by_name.get(name)

    def record(self, entry: Entry) -> Record:
        """Return where a record's payload is. Raises InputError where no header says so."""
        with opened(self.path) as file:
            return self._record(file, entry)

    def records(self) -> tuple[Record, ...]:
        """Return where all payloads are, in the order of `entries`. Raises InputError."""
        with opened(self.path) as file:
            return tuple(self._record(file, entry) for entry in self.entries)

    @cached_property
    def has_checksums(self) -> bool:
        """Whether any CRC is stored: torch writes zeros after set_crc32_options(False)."""
        return any(entry.crc32 for entry in self.entries)

    @cached_property
    def _by_name(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in reversed(self.entries)}

    def _record(self, file: int, entry: Entry) -> Record:
        if entry.method not in (fmt.STORED, fmt.DEFLATED):
            raise InputError(
                f"{self.path}: {quoted(entry.name)} is compressed by method {entry.method}",
                "only stored and deflated records can be read: zip it again",
            )
        return Record(
            name=entry.name,
            file=self.path,
            offset=read_local(file, entry, self).payload_offset,
            size_bytes=entry.size_bytes,
            stored_bytes=entry.stored_bytes,
            crc32=entry.crc32 if self.has_checksums else None,
            is_deflated=entry.method == fmt.DEFLATED,
        )


def read_directory(path: Path, start: int = 0, size: int | None = None) -> Directory:
    """Read the directory at the end of a zip, in memory bounded by what the file holds.

    The zip is `size` bytes from `start`, or all that follows. Raises InputError for a file without
    an end record, a directory that is broken or too large to be one, and records that lie outside
    of the file or overlap.
    """
    with opened(path) as file:
        stop = os.fstat(file).st_size if size is None else start + size
        end = read_end(file, start, stop, path)
        data = read_at(file, end.directory_offset, end.directory_bytes, path)
    entries = tuple(_parse(data, start, end, path))
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    _check_places(ordered, end, path)
    return Directory(
        path=path,
        start=start,
        size_bytes=stop - start,
        entries=entries,
        directory_offset=end.directory_offset,
        directory_bytes=end.directory_bytes,
        comment=end.comment,
        warnings=(*directory_oddities(end, ordered, start, stop), *name_oddities(entries)),
    )


def read_local(file: int, entry: Entry, directory: Directory) -> Local:
    """Read the header before a payload. Raises InputError where there is none, or no room."""
    path = directory.path
    head = read_at(file, entry.header_offset, fmt.LOCAL.size, path)
    if len(head) < fmt.LOCAL.size or not head.startswith(fmt.LOCAL_SIGNATURE):
        raise damaged(path, f"{quoted(entry.name)} is not where the zip's directory says")
    _, _, flags, method, _, _, crc, stored, size, names, extras = fmt.LOCAL.unpack(head)
    start = entry.header_offset + fmt.LOCAL.size
    payload = start + names + extras
    if payload + entry.stored_bytes > directory.directory_offset:
        raise damaged(path, f"{quoted(entry.name)} reaches into the zip's directory")
    rest = read_at(file, start, names + extras, path)
    try:
        size, stored = fmt.wide_fields(rest[names:], size, stored)
    except struct.error:
        raise damaged(path, f"{quoted(entry.name)} has a cut zip64 field") from None
    return Local(rest[:names], flags, method, crc, stored, size, payload)


def _parse(data: bytes, start: int, end: End, path: Path) -> Iterator[Entry]:
    at = 0
    for index in range(end.count):
        if not data.startswith(fmt.CENTRAL_SIGNATURE, at) or at + fmt.CENTRAL.size > len(data):
            raise damaged(path, f"the zip's directory breaks after {index} of {end.count} records")
        (
            _, _, _, flags, method, _, _, crc, stored, size, names, extras, comments,
            _, _, _, header,
        ) = fmt.CENTRAL.unpack_from(data, at)  # fmt: skip
        name_stop = at + fmt.CENTRAL.size + names
        stop = name_stop + extras + comments
        raw = data[at + fmt.CENTRAL.size : name_stop]
        if stop > len(data):
            raise damaged(path, f"the zip's directory breaks in record {index + 1} of {end.count}")
        if fmt.SEE_ZIP64 in (size, stored, header):
            extra = data[name_stop : name_stop + extras]
            try:
                size, stored, header = fmt.wide_fields(extra, size, stored, header)
            except struct.error:
                raise damaged(path, f"{quoted(_decoded(raw))} has a cut zip64 field") from None
        yield Entry(
            _decoded(raw), raw, flags, method, crc, stored, size, start + header,
            end.directory_offset + at, stop - at,
        )  # fmt: skip
        at = stop


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()  # as torch does, whatever the flag says
    except UnicodeDecodeError:
        return raw.decode("cp437")


def _check_places(ordered: list[Entry], end: End, path: Path) -> None:
    for index, entry in enumerate(ordered):
        stop = entry.header_offset + fmt.LOCAL.size + len(entry.raw_name) + entry.stored_bytes
        if stop > end.directory_offset:
            raise damaged(
                path,
                f"{quoted(entry.name)} claims {entry.stored_bytes} bytes at {entry.header_offset}; "
                f"the zip's records end at {end.directory_offset}",
            )
        if index + 1 < len(ordered) and stop > ordered[index + 1].header_offset:
            other = ordered[index + 1].name
            raise damaged(path, f"the records {quoted(entry.name)} and {quoted(other)} overlap")
