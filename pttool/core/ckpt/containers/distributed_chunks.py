"""The chunks of a distributed checkpoint: each is a whole torch zip inside of a bigger file."""

from collections.abc import Mapping

from pttool.core.ckpt.files.payload import check_extent, damaged, opened, read_at, read_record
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.tensors.recognition import recognise_tensor
from pttool.core.ckpt.tensors.storages import Storages
from pttool.core.ckpt.types import Pickled, Record, Tensor
from pttool.core.ckpt.zips.directory import read_directory
from pttool.core.ckpt.zips.layout import LOCAL_SIGNATURE
from pttool.errors import InputError

LARGEST_PICKLE = 1 << 24


def records_in(chunk: Record) -> tuple[Record, ...]:
    """Return the records of the zip that a chunk is; none for one that is stored otherwise.

    Raises InputError for a zip that is damaged or cut.
    """
    with opened(chunk.file) as file:
        check_extent(file, chunk)
        if read_at(file, chunk.offset, 4, chunk.file) != LOCAL_SIGNATURE:
            return ()
    try:
        return read_directory(chunk.file, chunk.offset, chunk.size_bytes).records()
    except InputError as error:
        what = f"the zip in the chunk of {quoted(chunk.name)} is damaged"
        raise damaged(chunk.file, what) from error


def tensor_in(chunk: Record) -> Tensor:
    """Return the tensor that a chunk holds, its storage being where the elements are.

    Raises InputError for a chunk that is damaged, or stored otherwise than as torch's zip.
    """
    by_name = _by_name(chunk)
    order = by_name.get("byteorder")
    is_big = order is not None and read_record(order, 8) == b"big"
    storages = Storages(lambda key: by_name.get(f"data/{key}"), big_endian=is_big)
    tensor = recognise_tensor(_pickle(by_name, chunk).root, (), storages)
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
