"""The chunks of a distributed checkpoint: each is a whole torch zip inside of a bigger file."""

import struct
from collections.abc import Iterator, Mapping

from pttool.core.ckpt.files.payload import (
    check_extent,
    damaged,
    opened,
    quoted,
    read_at,
    read_record,
)
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.tensors.recognition import recognise
from pttool.core.ckpt.tensors.storages import Storages
from pttool.core.ckpt.types import Pickled, Record, Tensor
from pttool.core.ckpt.zips import layout as fmt
from pttool.errors import InputError

LARGEST_DIRECTORY = 1 << 20
LARGEST_PICKLE = 1 << 24


def records_in(chunk: Record) -> tuple[Record, ...]:
    """Return the records of the zip that a chunk is; none for one that is stored otherwise.

    torch writes no comment behind the end record and no more records than a tensor needs. Raises
    InputError for a zip that is damaged or cut.
    """
    with opened(chunk.file) as file:
        check_extent(file, chunk)
        if read_at(file, chunk.offset, 4, chunk.file) != fmt.LOCAL_SIGNATURE:
            return ()
        try:
            return tuple(_entries(file, chunk, _directory(file, chunk)))
        except struct.error:
            raise _damaged(chunk) from None


def tensor_in(chunk: Record) -> Tensor:
    """Return the tensor that a chunk holds, its storage being where the elements are.

    Raises InputError for a chunk that is damaged, or stored otherwise than as torch's zip.
    """
    by_name = _by_name(chunk)
    order = by_name.get("byteorder")
    is_big = order is not None and read_record(order, 8) == b"big"
    storages = Storages(lambda key: by_name.get(f"data/{key}"), big_endian=is_big)
    tensor = recognise(_pickle(by_name, chunk).root, (), storages)
    if tensor is None:
        raise InputError(
            f"{chunk.file}: the chunk of {quoted(chunk.name)} holds no tensor",
            "the folder is damaged: copy it again",
        )
    return tensor


def pickle_in(chunk: Record) -> Pickled:
    """Return the pickle of what a chunk holds. Raises InputError as `tensor_in` does."""
    return _pickle(_by_name(chunk), chunk)


def _by_name(chunk: Record) -> dict[str, Record]:
    return {record.name.partition("/")[2]: record for record in records_in(chunk)}


def _pickle(by_name: Mapping[str, Record], chunk: Record) -> Pickled:
    record = by_name.get("data.pkl")
    if record is None:
        raise InputError(
            f"{chunk.file}: the chunk of {quoted(chunk.name)} is no torch zip",
            "what a storage extension changed can't be read here",
        )
    return walk(read_record(record, LARGEST_PICKLE), record)


def _directory(file: int, chunk: Record) -> bytes:
    size = fmt.LOCATOR.size + fmt.END.size
    start = max(chunk.size_bytes - size, 0)
    tail = read_at(file, chunk.offset + start, min(size, chunk.size_bytes), chunk.file)
    end = tail[-fmt.END.size :]
    if not end.startswith(fmt.END_SIGNATURE):
        raise _damaged(chunk)
    *_, length, offset, _ = fmt.END.unpack(end)
    if tail.startswith(fmt.LOCATOR_SIGNATURE):
        _, _, wide_at, _ = fmt.LOCATOR.unpack_from(tail)
        wide = read_at(file, chunk.offset + wide_at, fmt.END64.size, chunk.file)
        if wide_at > start or not wide.startswith(fmt.END64_SIGNATURE):
            raise _damaged(chunk)
        *_, length, offset = fmt.END64.unpack(wide)
    if length > LARGEST_DIRECTORY or offset + length > chunk.size_bytes:
        raise _damaged(chunk)
    return read_at(file, chunk.offset + offset, length, chunk.file)


def _entries(file: int, chunk: Record, directory: bytes) -> Iterator[Record]:
    at = 0
    while at < len(directory):
        (
            signature, _, _, _, method, _, _, crc, stored, size, names, extras, comments,
            _, _, _, header,
        ) = fmt.CENTRAL.unpack_from(directory, at)  # fmt: skip
        at += fmt.CENTRAL.size
        name = directory[at : at + names].decode("utf-8", "replace")
        extra = directory[at + names : at + names + extras]
        size, stored, header = fmt.wide_fields(extra, size, stored, header)
        at += names + extras + comments
        local = read_at(file, chunk.offset + header, fmt.LOCAL.size, chunk.file)
        local_signature, *_, local_names, local_extras = fmt.LOCAL.unpack(local)
        payload = header + fmt.LOCAL.size + local_names + local_extras
        if (
            (signature, local_signature) != (fmt.CENTRAL_SIGNATURE, fmt.LOCAL_SIGNATURE)
            or method not in (fmt.STORED, fmt.DEFLATED)
            or payload + stored > chunk.size_bytes
        ):
            raise _damaged(chunk)
        is_deflated = method == fmt.DEFLATED
        yield Record(name, chunk.file, chunk.offset + payload, size, stored, crc, is_deflated)


def _damaged(chunk: Record) -> InputError:
    return damaged(chunk.file, f"the zip in the chunk of {quoted(chunk.name)} is damaged")
