"""The plain tensors that a tensor's elements lie in, and how to read them in bounded memory."""

from collections.abc import Iterator
from dataclasses import replace

from pttool.core.ckpt.integrity.chunks import tensor_in
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import BLOCK_BYTES, count, extent, is_contiguous, raw_blocks
from pttool.core.ckpt.types import Record, Tensor

# A view can show the same elements any number of times; no honest one is read more often.
MOST_REPEATS = 64
# What is computed from larger blocks is mapped anew each time: 7 times as slow.
COMPUTED_BYTES = 1 << 15
# Several elements to a byte.
PACKED = ("quint4x2", "quint2x4")
NEGATED_WHEN_READ = ("float32", "float64", "complex64", "complex128")


def plain_parts(tensor: Tensor) -> list[Tensor]:
    """Return the tensors that together hold the elements of one, in any order.

    None where a chunk of a distributed one isn't there. Raises InputError for a damaged chunk.
    """
    if not tensor.parts:
        return [tensor]
    if tensor.layout != "strided":
        return [tensor.parts[-1] if tensor.layout.startswith("sparse") else tensor.parts[0]]
    chunks = [_chunk(part) for part in tensor.parts]
    return [] if None in chunks else [tensor_in(chunk) for chunk in chunks if chunk is not None]


def row_major_parts(tensor: Tensor) -> list[Tensor]:
    """Return the tensors whose elements, one after the other, are those of a plain one in order.

    None where a distributed one is cut along other dimensions than the first, or not all there.
    """
    if not tensor.parts:
        return [tensor]
    reached = 0
    for part in sorted(tensor.parts, key=lambda part: part.path[0]):
        start = (*part.path[0], *(0,) * len(tensor.shape))[: len(tensor.shape)]
        if start[:1] != (reached,)[: len(start)] or any(start[1:]):
            return []
        if part.shape[1:] != tensor.shape[1:]:
            return []
        reached += part.shape[0] if part.shape else 0
    if tensor.shape and reached != tensor.shape[0]:
        return []
    ordered = replace(tensor, parts=tuple(sorted(tensor.parts, key=lambda part: part.path[0])))
    return plain_parts(ordered)


def unreadable(tensor: Tensor) -> str | None:
    """Return why the elements of a plain tensor can't be read, or None."""
    if tensor.layout not in ("strided", "quantized"):
        return f"it is {tensor.layout}"
    if tensor.storage is None or tensor.storage.record is None:
        return "its elements are not in the file as they are"
    if not item_bytes(tensor.dtype) or tensor.dtype in PACKED:
        return f"{tensor.dtype} elements can't be read one by one"
    if tensor.pending and tensor.dtype not in NEGATED_WHEN_READ:
        return f"it is a {tensor.pending[0]} view of {tensor.dtype}"
    return None


def each_once(tensor: Tensor) -> Tensor:
    """Return a tensor in the order of its storage, without the dimensions that only repeat it."""
    dimensions = [
        (step, size)
        for size, step in zip(tensor.shape, tensor.stride, strict=True)
        if size != 1 and (step or not size)
    ]
    dimensions.sort(reverse=True)
    return replace(
        tensor,
        shape=tuple(size for _, size in dimensions),
        stride=tuple(step for step, _ in dimensions),
    )


def repeats(tensor: Tensor) -> float:
    """Return how often a tensor shows an element of its storage, at the mean."""
    start, stop = extent(tensor)
    return count(tensor) * item_bytes(tensor.dtype) / max(stop - start, 1)


def bounded_blocks(tensor: Tensor, name: str) -> Iterator[bytes]:
    """Yield the elements as raw_blocks does, however long the rows are."""
    for slab in _slabs(tensor):
        yield from raw_blocks(slab, name, size=COMPUTED_BYTES)


def _slabs(tensor: Tensor) -> Iterator[Tensor]:
    """Yield a tensor in parts whose rows fit into a block, cut along the first dimensions."""
    row = count(tensor) // max(tensor.shape[0], 1) if tensor.shape else 0
    record = _chunk(tensor)
    is_small = len(tensor.shape) < 2 or row * item_bytes(tensor.dtype) <= BLOCK_BYTES
    # What is deflated is inflated as a whole, once for each part.
    if is_small or is_contiguous(tensor) or (record is not None and record.is_deflated):
        yield tensor
        return
    for index in range(tensor.shape[0]):
        offset = tensor.offset + index * tensor.stride[0]
        inner = replace(tensor, shape=tensor.shape[1:], stride=tensor.stride[1:], offset=offset)
        yield from _slabs(inner)


def _chunk(tensor: Tensor) -> Record | None:
    return tensor.storage.record if tensor.storage is not None else None
