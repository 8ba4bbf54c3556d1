"""The plain tensors that a tensor's elements lie in."""

from dataclasses import replace

from pttool.core.ckpt.containers.distributed_chunks import tensor_in
from pttool.core.ckpt.tensors.dtypes import PACKED, item_bytes
from pttool.core.ckpt.tensors.elements import count, extent
from pttool.core.ckpt.types import Record, Tensor

# A view can show the same elements any number of times; no honest one is read more often.
MOST_REPEATS = 64
NEGATED_WHEN_READ = ("float32", "float64", "complex64", "complex128")


def plain_parts(tensor: Tensor) -> list[Tensor]:
    """Return the tensors that together hold the elements of one, in any order.

    None where a chunk of a distributed one isn't there. Raises InputError for a damaged chunk.
    """
    if not tensor.parts:
        return [tensor]
    if tensor.layout != "strided":
        return [tensor.parts[-1] if tensor.layout.startswith("sparse") else tensor.parts[0]]
    chunks = [_record_of(part) for part in tensor.parts]
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


def why_unreadable(tensor: Tensor) -> str | None:
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


def _record_of(tensor: Tensor) -> Record | None:
    return tensor.storage.record if tensor.storage is not None else None
