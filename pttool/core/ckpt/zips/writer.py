"""Writing a zip as torch.save lays one out.

torch computes where a storage lies instead of looking (torch/serialization.py, `_get_offset`) in
files that have a `.format_version` record: so local headers, paddings and data descriptors must
take the bytes that PyTorchStreamWriter (caffe2/serialize/inline_container.cc, `getPadding`) and its
miniz give them. A data descriptor also needs no seeking back: the target may be a pipe.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from pttool.core.ckpt.files.copying import copy_record, is_worth_copying, of_size
from pttool.core.ckpt.files.payload import blocks, crc32
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.types import Record
from pttool.core.ckpt.zips import layout as fmt
from pttool.errors import InputError

ALIGNMENT = 64  # of torch, where no `.storage_alignment` record says another
_PADDING_ID = 0x4246
_ZIP64_VERSION = 45
_PLAIN_VERSION = 20
_FIRST_DAY = 0x21  # 1980-01-01: zeros, as torch writes, are no date
_MARK = fmt.SEE_ZIP64


@dataclass(frozen=True, slots=True)
class _Begun:
    raw_name: bytes
    size: int
    offset: int

    @property
    def is_wide(self) -> bool:
        return max(self.size, self.offset) >= _MARK

    @property
    def flags(self) -> int:
        return fmt.UTF8 | (fmt.HAS_DESCRIPTOR if self.size else 0)

    @property
    def version(self) -> int:
        return _ZIP64_VERSION if self.is_wide else _PLAIN_VERSION

    def zip64(self) -> bytes:
        sizes = (self.size, self.size) if self.size >= _MARK else ()
        values = (*sizes, self.offset) if self.offset >= _MARK else sizes
        if not values:
            return b""
        count = len(values)
        return struct.pack(f"<2H{count}Q", fmt.ZIP64_ID, 8 * count, *values)


class ZipWriter:
    """Writes stored records to a stream from its first byte on; `close` ends the zip.

    Names and payloads are written in the order of the calls. Nothing is sought, so that a pipe
    will do. Raises InputError for a doubled name, or bytes that don't come as announced.
    """

    def __init__(self, stream: BinaryIO, alignment: int = ALIGNMENT) -> None:
        self._stream = stream
        self._alignment = alignment
        self._offset = 0
        self._central: list[bytes] = []
        self._names: set[str] = set()

    def add(self, name: str, payload: bytes) -> None:
        """Write a record from memory."""
        self.add_stream(name, len(payload), (payload,))

    def add_stream(self, name: str, size: int, blocks: Iterable[bytes]) -> None:
        """Write a record of `size` bytes that come in blocks."""
        begun = self._begin(name, size)
        self._finish(begun, self._write_blocks(name, size, blocks))

    def copy(self, record: Record, name: str) -> None:
        """Write a record of another file, inflated, with the checksum that it has there.

        So what is damaged there stays recognisable here. A record without one gets the right one.
        """
        begun = self._begin(name, record.size_bytes)
        if not is_worth_copying(record, self._stream):
            computed = self._write_blocks(name, record.size_bytes, blocks(record))
            self._finish(begun, computed if record.crc32 is None else record.crc32)
            return
        checksum = crc32(record) if record.crc32 is None else record.crc32
        copy_record(self._stream, record, self._offset)
        self._offset += record.size_bytes
        self._finish(begun, checksum)

    def close(self) -> None:
        """Write the directory and both end records, as torch does. The stream stays open."""
        start, count = self._offset, len(self._central)
        for central in self._central:
            self._write(central)
        length, end = self._offset - start, self._offset
        self._write(
            fmt.END64.pack(
                fmt.END64_SIGNATURE, fmt.END64.size - 12, _ZIP64_VERSION, _ZIP64_VERSION, 0, 0,
                count, count, length, start,
            )
        )  # fmt: skip
        self._write(fmt.LOCATOR.pack(fmt.LOCATOR_SIGNATURE, 0, end, 1))
        few, short, near = min(count, 0xFFFF), min(length, _MARK), min(start, _MARK)
        self._write(fmt.END.pack(fmt.END_SIGNATURE, 0, 0, few, few, short, near, 0))

    def _begin(self, name: str, size: int) -> _Begun:
        raw = name.encode()
        if name in self._names:
            raise InputError(f"{quoted(name)}: two records of this name", "give each its own name")
        if len(raw) > 0xFFFF:
            raise InputError(f"{quoted(name)}: is too long for a name in a zip", "shorten it")
        self._names.add(name)
        begun = _Begun(raw, size, self._offset)
        extra = begun.zip64()
        unpadded = self._offset + fmt.LOCAL.size + len(raw) + len(extra) + 4
        padding = -unpadded % self._alignment
        extra += struct.pack("<2H", _PADDING_ID, padding) + b"Z" * padding
        head = fmt.LOCAL.pack(
            fmt.LOCAL_SIGNATURE, begun.version, begun.flags, fmt.STORED, 0, _FIRST_DAY, 0, 0, 0,
            len(raw), len(extra),
        )  # fmt: skip
        self._write(head + raw + extra)
        return begun

    def _finish(self, begun: _Begun, checksum: int) -> None:
        if begun.size:
            sizes = struct.pack("<2Q" if begun.is_wide else "<2L", begun.size, begun.size)
            self._write(fmt.DESCRIPTOR_SIGNATURE + struct.pack("<L", checksum) + sizes)
        extra = begun.zip64()
        size, offset = min(begun.size, _MARK), min(begun.offset, _MARK)
        head = fmt.CENTRAL.pack(
            fmt.CENTRAL_SIGNATURE, begun.version, begun.version, begun.flags, fmt.STORED, 0,
            _FIRST_DAY, checksum, size, size, len(begun.raw_name), len(extra), 0, 0, 0, 0, offset,
        )  # fmt: skip
        self._central.append(head + begun.raw_name + extra)

    def _write_blocks(self, name: str, size: int, blocks: Iterable[bytes]) -> int:
        """Write the blocks of a payload and return their checksum."""
        checksum = 0
        for block in of_size(blocks, size, name):
            checksum = zlib.crc32(block, checksum)
            self._write(block)
        return checksum

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._offset += len(data)
