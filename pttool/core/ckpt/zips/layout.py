"""What a zip is made of: its fixed parts, and what they say of a record.

Format: APPNOTE.TXT of PKWARE, 4.3.7 to 4.3.16 and 4.5.3 (zip64).
"""

import struct
from dataclasses import dataclass

# version needed, flags, method, time, date, crc, stored, size, name, extra
LOCAL = struct.Struct("<4s5H3L2H")
LOCAL_SIGNATURE = b"PK\3\4"
# made by, needed, flags, method, time, date, crc, stored, size, name, extra, comment, disk,
# internal and external attributes, offset of the local header
CENTRAL = struct.Struct("<4s6H3L5H2L")
CENTRAL_SIGNATURE = b"PK\1\2"
CENTRAL_CRC_OFFSET = 16
LOCAL_CRC_OFFSET = 14
# disk, disk of the directory, records on the disk, records, directory bytes and offset, comment
END = struct.Struct("<4s4H2LH")
END_SIGNATURE = b"PK\5\6"
# bytes that follow, made by, needed, and as END
END64 = struct.Struct("<4sQ2H2L4Q")
END64_SIGNATURE = b"PK\6\6"
# disk and offset of END64, disks
LOCATOR = struct.Struct("<4sLQL")
LOCATOR_SIGNATURE = b"PK\6\7"
DESCRIPTOR_SIGNATURE = b"PK\7\x08"
SIGNED_DESCRIPTORS = (16, 24)  # the bytes of those that begin with the signature

ENCRYPTED = 1 << 0
HAS_DESCRIPTOR = 1 << 3
STRONGLY_ENCRYPTED = 1 << 6
UTF8 = 1 << 11
MASKED = 1 << 13

STORED = 0
DEFLATED = 8

# A 32-bit field that says: see the zip64 extra field.
SEE_ZIP64 = 0xFFFFFFFF
ZIP64_ID = 1
LONGEST_COMMENT = 0xFFFF


@dataclass(frozen=True, slots=True)
class Entry:
    """What the directory says of one record; every number is a claim until it is compared.

    Its central record takes `directory_bytes` at `directory_offset` of the file.
    """

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc32: int
    stored_bytes: int
    size_bytes: int
    header_offset: int
    directory_offset: int
    directory_bytes: int


@dataclass(frozen=True, slots=True)
class Local:
    """What the header before a record's payload says."""

    raw_name: bytes
    flags: int
    method: int
    crc32: int
    stored_bytes: int
    size_bytes: int
    payload_offset: int


def extra_field(extra: bytes, wanted: int) -> bytes | None:
    """Return the body of an extra field, or None. Raises struct.error for one that is cut."""
    at = 0
    while at + 4 <= len(extra):
        kind, count = struct.unpack_from("<2H", extra, at)
        if kind == wanted:
            body = extra[at + 4 : at + 4 + count]
            if len(body) < count:
                raise struct.error
            return body
        at += 4 + count
    return None


def wide_fields(extra: bytes, *fields: int) -> tuple[int, ...]:
    """Return sizes and offsets, in the order of APPNOTE 4.5.3, with the zip64 ones looked up.

    Raises struct.error when the zip64 field is too short for those that point to it.
    """
    body = extra_field(extra, ZIP64_ID) if SEE_ZIP64 in fields else None
    if body is None:
        return fields
    found, at = [], 0
    for value in fields:
        if value == SEE_ZIP64:
            (value,) = struct.unpack_from("<Q", body, at)
            at += 8
        found.append(value)
    return tuple(found)
