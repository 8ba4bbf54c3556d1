"""Which bytes of a zip change when the payload of one record does, and its length doesn't."""

import struct
import zlib

from pttool.core.ckpt.files.patching import Patch
from pttool.core.ckpt.files.payload import damaged, opened
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.zips import layout as fmt
from pttool.core.ckpt.zips.consistency import find_descriptor
from pttool.core.ckpt.zips.directory import Directory, read_local
from pttool.core.ckpt.zips.layout import Entry
from pttool.errors import InputError


def zip_patches(directory: Directory, entry: Entry, new_payload: bytes) -> list[Patch]:
    """Return the patches that give a stored record another payload of the same length.

    The checksum stands in the directory, and in the local header or the data descriptor behind the
    payload (APPNOTE 4.4.4, bit 3). Raises ValueError for another length; InputError for a deflated
    record, and for headers that contradict the directory.
    """
    name = quoted(entry.name)
    if entry.method != fmt.STORED:
        hint = "write to another file: it is stored plainly there"
        raise InputError(f"{directory.path}: {name} is compressed: it can't be patched", hint)
    if not len(new_payload) == entry.size_bytes == entry.stored_bytes:
        raise ValueError(f"{name} holds {entry.size_bytes} bytes, not {len(new_payload)}")
    crc = struct.pack("<L", zlib.crc32(new_payload))
    with opened(directory.path) as file:
        local = read_local(file, entry, directory)
        descriptor = find_descriptor(file, entry, local, directory)
    places = [entry.directory_offset + fmt.CENTRAL_CRC_OFFSET]
    has_descriptor = bool(local.flags & fmt.HAS_DESCRIPTOR)
    # Some writers know the checksum beforehand, and yet write a descriptor.
    if not has_descriptor or local.crc32:
        if local.crc32 != entry.crc32:
            raise damaged(directory.path, f"{name} has two checksums")
        places.append(entry.header_offset + fmt.LOCAL_CRC_OFFSET)
    if has_descriptor:
        if descriptor is None:
            raise damaged(directory.path, f"{name} has no data descriptor where one should be")
        stop = local.payload_offset + entry.stored_bytes
        places.append(stop + (4 if descriptor in fmt.SIGNED_DESCRIPTORS else 0))
    return [Patch(local.payload_offset, new_payload), *(Patch(place, crc) for place in places)]
