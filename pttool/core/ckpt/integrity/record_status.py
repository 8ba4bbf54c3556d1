"""Whether a record holds the bytes that it was written with."""

import os
from dataclasses import dataclass

from pttool.core.ckpt.containers.distributed_chunks import records_in
from pttool.core.ckpt.files.payload import check_extent, crc32, opened
from pttool.core.ckpt.types import Record
from pttool.errors import InputError

OK, NO_CHECKSUM = "ok", "no checksum"
DAMAGED, MISSING, WRONG_SIZE = "damaged", "missing", "wrong size"
FINE = (OK, NO_CHECKSUM)


@dataclass(frozen=True, slots=True)
class Status:
    """One of the words above, and why a record isn't fine."""

    status: str
    reason: str | None = None

    @property
    def is_fine(self) -> bool:
        """Whether nothing is known against the record."""
        return self.status in FINE


def status_of(record: Record, *, is_chunk: bool = False) -> Status:
    """Read a record that has a checksum, once; of others only compare where they end.

    A chunk of a distributed checkpoint is a zip with checksums of its own.
    """
    if not os.path.exists(record.file):
        return Status(MISSING, f"{record.file.name} is not there")
    try:
        if is_chunk:
            return _of_chunk(record)
        if not has_checksum(record):
            return _without_checksum(record)
        found = crc32(record)
    except InputError as error:
        return Status(DAMAGED, error.message.removeprefix(f"{record.file}: "))
    if found == record.crc32:
        return Status(OK)
    return Status(DAMAGED, f"its checksum is {found:08x}, not {record.crc32:08x}")


def has_checksum(record: Record) -> bool:
    """Whether a checksum is stored: torch's skip_data() leaves it 0 in records to be filled in."""
    return record.crc32 is not None and (record.crc32 != 0 or not record.size_bytes)


def _without_checksum(record: Record) -> Status:
    if record.is_deflated:  # what is inflated has to have the length that is claimed
        crc32(record)
    with opened(record.file) as file:
        check_extent(file, record)
    return Status(NO_CHECKSUM)


def _of_chunk(chunk: Record) -> Status:
    inner = records_in(chunk)
    for record in inner:
        status = status_of(record)
        if not status.is_fine:
            name = record.name.partition("/")[2]
            return Status(status.status, f"{name} of the zip inside: {status.reason}")
    has_any = any(has_checksum(record) and record.size_bytes for record in inner)
    return Status(OK if has_any else NO_CHECKSUM)
