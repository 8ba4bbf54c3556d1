"""The elements of a tensor as bytes, read in bounded memory."""

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pttool.core.ckpt.files.payload import blocks, check_extent, damaged, opened, read_record
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.recognition import UNKNOWN_SIZE, contiguous_stride
from pttool.core.ckpt.types import Record, Tensor
from pttool.errors import InputError

if TYPE_CHECKING:
    import numpy as np

BLOCK_BYTES = 1 << 20
# For what is computed: larger results are mapped anew each time, which is 7 times as slow.
COMPUTED_BYTES = 1 << 15
# A deflated storage can only be read as a whole when its elements are wanted in another order.
LARGEST_INFLATED = 1 << 31


def count(tensor: Tensor) -> int:
    """Return the number of elements; of a nested tensor, those of its values."""
    if UNKNOWN_SIZE in tensor.shape:
        return sum(map(count, tensor.parts[:1]))
    return math.prod(tensor.shape)


def is_contiguous(tensor: Tensor) -> bool:
    """Whether the elements lie one after another, as torch.Tensor.is_contiguous says."""
    if 0 in tensor.shape:
        return True
    wanted = contiguous_stride(tensor.shape)
    return all(
        size == 1 or has == wants
        for size, has, wants in zip(tensor.shape, tensor.stride, wanted, strict=True)
    )


def extent(tensor: Tensor) -> tuple[int, int]:
    """Return the bytes of the storage between which the elements lie."""
    item = item_bytes(tensor.dtype)
    start = tensor.offset * item
    if 0 in tensor.shape:
        return start, start
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride, strict=True))
    return start, start + (last + 1) * item


def identity(tensor: Tensor) -> tuple[object, ...]:
    """Return what tensors that are the same elements have in common."""
    if tensor.storage is None:
        return (id(tensor),)
    where = tensor.storage.record or tensor.storage.key
    return where, tensor.dtype, tensor.offset, tensor.shape, tensor.stride, tensor.pending


def raw_blocks(tensor: Tensor, name: str, *, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the elements in row-major order, little-endian, a whole number of them in each block.

    numpy is imported only where they lie in another order. Raises InputError, with the tensor's
    `name`, where they are not in the file, or in a form that isn't read.
    """
    record = record_of(tensor, name)
    if count(tensor) * item_bytes(tensor.dtype) > sys.maxsize:
        raise damaged(record.file, f"{name} claims to have {count(tensor):,} elements")
    for slab in _slabs(tensor, record):
        yield from _blocks(slab, record, size)


def _slabs(tensor: Tensor, record: Record) -> Iterator[Tensor]:
    """Yield a tensor in parts whose rows fit into a block, cut along the first dimensions.

    So that no more of a file is mapped at a time than a part needs.
    """
    row = count(tensor) // max(tensor.shape[0], 1) if tensor.shape else 0
    is_small = len(tensor.shape) < 2 or row * item_bytes(tensor.dtype) <= BLOCK_BYTES
    # What is deflated is inflated as a whole, once for each part.
    if is_small or is_contiguous(tensor) or record.is_deflated:
        yield tensor
        return
    for index in range(tensor.shape[0]):
        offset = tensor.offset + index * tensor.stride[0]
        inner = replace(tensor, shape=tensor.shape[1:], stride=tensor.stride[1:], offset=offset)
        yield from _slabs(inner, record)


def _blocks(tensor: Tensor, record: Record, size: int) -> Iterator[bytes]:
    start, stop = extent(tensor)
    item = item_bytes(tensor.dtype)
    plain = tensor.storage is not None and not tensor.storage.big_endian and not tensor.pending
    if plain and is_contiguous(tensor):
        found = blocks(record, start=start, stop=stop, size=max(size // item, 1) * item)
        # What is inflated comes in pieces of any length.
        yield from _whole_items(found, item) if record.is_deflated else found
    else:
        for block in _strided_blocks(tensor, record, size):
            yield block.tobytes()


def _whole_items(found: Iterator[bytes], item: int) -> Iterator[bytes]:
    rest = b""
    for block in found:
        block = rest + block
        whole = len(block) // item * item
        rest = block[whole:]
        if whole:
            yield block[:whole]


def record_of(tensor: Tensor, name: str) -> Record:
    """Return the record in which all elements lie. Raises InputError, with the tensor's `name`."""
    if tensor.storage is None or tensor.layout not in ("strided", "quantized"):
        raise InputError(f"{name}: is {tensor.layout}, without plain elements", "leave it out")
    record = tensor.storage.record
    if record is None:
        raise InputError(f"{name}: its elements are not in the file", "leave it out")
    if not item_bytes(tensor.dtype):
        raise InputError(f"{name}: {tensor.dtype} is no known type", "leave it out")
    if min((tensor.offset, *tensor.shape, *tensor.stride)) < 0:
        raise damaged(record.file, f"{name} has a size, stride or offset below zero")
    if extent(tensor)[1] > record.size_bytes:
        raise InputError(
            f"{record.file}: {name} ends at byte {extent(tensor)[1]:,} of a storage of "
            f"{record.size_bytes:,}",
            "the file is damaged: copy or download it again",
        )
    return record


def _strided_blocks(tensor: Tensor, record: Record, size: int) -> Iterator["np.ndarray[Any, Any]"]:
    """Yield parts of the elements, in the order wanted."""
    import numpy as np
    from numpy.lib.stride_tricks import as_strided

    if 0 in tensor.shape:
        return
    item = item_bytes(tensor.dtype)
    start, _ = extent(tensor)
    whole: np.ndarray[Any, Any]
    if record.is_deflated:
        whole = np.frombuffer(read_record(record, LARGEST_INFLATED), np.uint8)
    else:
        with opened(record.file) as file:
            check_extent(file, record)
        whole = np.memmap(record.file, np.uint8, "r", record.offset, (record.size_bytes,))
    element = np.dtype((np.void, item))
    base = whole[start : start + item].view(element)
    # Where there is one element only, the stride may be any number.
    steps = [(n, step * item) for n, step in zip(tensor.shape, tensor.stride, strict=True) if n > 1]
    view = as_strided(base, [n for n, _ in steps] or (1,), [step for _, step in steps] or (item,))
    for part in _cut(view, size):
        yield _finished(np.ascontiguousarray(part), tensor)


def _cut(view: "np.ndarray[Any, Any]", size: int) -> Iterator["np.ndarray[Any, Any]"]:
    """Yield parts of about `size` bytes at most, cut along the first dimensions only."""
    if view.nbytes <= size:
        yield view
        return
    row = view.nbytes // view.shape[0]
    if row > size:
        for part in view:
            yield from _cut(part, size)
        return
    rows = max(size // row, 1)
    for first in range(0, view.shape[0], rows):
        yield view[first : first + rows]


def _finished(block: "np.ndarray[Any, Any]", tensor: Tensor) -> "np.ndarray[Any, Any]":
    """Turn elements to little-endian, and do what torch does when it reads them."""
    import numpy as np

    order = ">" if tensor.storage is not None and tensor.storage.big_endian else "<"
    kinds = {"complex64": "c8", "complex128": "c16", "float32": "f4", "float64": "f8"}
    kind = kinds.get(tensor.dtype, f"V{item_bytes(tensor.dtype)}")
    if tensor.pending and not kind.startswith(("c", "f")):
        raise InputError(f"{tensor.dtype} elements that are {tensor.pending[0]} views aren't read")
    if kind.startswith("V"):
        if order == "<":
            return block
        swapped = block.view(np.uint8).reshape(-1, item_bytes(tensor.dtype))[:, ::-1]
        return np.ascontiguousarray(swapped)
    numbers = block.view(f"{order}{kind}").astype(f"<{kind}")
    if "neg" in tensor.pending:
        numbers = -numbers
    return np.conj(numbers) if "conj" in tensor.pending else numbers
