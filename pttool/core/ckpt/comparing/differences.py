"""How the elements of two tensors of one shape differ, read side by side in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pttool.core.ckpt.tensors.decoding import Numbers, decoded
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import COMPUTED_BYTES, count, raw_blocks
from pttool.core.ckpt.tensors.pieces import (
    MOST_REPEATS,
    repeats,
    row_major_parts,
    why_unreadable,
)
from pttool.core.ckpt.types import Tensor


@dataclass(slots=True)
class Difference:
    """What differs among `numel` elements; `equal` ones have the same bits.

    For tensors of two types, `equal` ones have the same value. `max_abs` and `max_rel`, which is
    relative to the greater magnitude, are over pairs of finite numbers; None for types without
    numbers. `nonfinite` pairs differ where one at least is NaN or infinite.
    """

    numel: int = 0
    equal: int = 0
    max_abs: float | int | None = None
    max_rel: float | None = None
    nonfinite: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether all elements are."""
        return self.equal == self.numel

    @property
    def is_in_bits_alone(self) -> bool:
        """Whether no value differs, as 0 and -0 or two kinds of NaN don't."""
        return not self.is_equal and self.max_abs == 0 and not self.nonfinite


def difference(a: Tensor, b: Tensor, name: str) -> Difference | str:
    """Compare two tensors of the same shape and layout, or return why they can't be.

    Sparse and nested ones are compared by the tensors that they are made of. Raises InputError,
    with the tensors' `name`, for elements that can't be read.
    """
    if a.layout in ("strided", "quantized"):
        return _of_plain(row_major_parts(a), row_major_parts(b), name)
    total = Difference()
    for one, other in zip(a.parts, b.parts, strict=False):
        if one.shape != other.shape:
            return "they are made of tensors of other shapes"
        found = _of_plain([one], [other], name)
        if isinstance(found, str):
            return found
        _add(total, found)
    return total if a.parts and len(a.parts) == len(b.parts) else f"they are {a.layout}"


def _of_plain(a: list[Tensor], b: list[Tensor], name: str) -> Difference | str:
    if not a or not b:
        return "its chunks are not one after the other"
    reason = next((why for why in map(why_unreadable, (*a, *b)) if why is not None), None)
    if reason is not None:
        return reason
    times = 1
    if len(a) == len(b) == 1:
        a, b, times = _without_repeats(a[0], b[0])
    if min(max(map(repeats, a)), max(map(repeats, b))) > MOST_REPEATS:
        return "they show the same elements too many times"
    types = (a[0].dtype, b[0].dtype)
    total = Difference()
    for left, right in _side_by_side(_blocks(a, name), _blocks(b, name), *map(item_bytes, types)):
        _add(total, _of_blocks(left, right, *types))
    return replace(
        total,
        numel=total.numel * times,
        equal=total.equal * times,
        nonfinite=total.nonfinite * times,
    )


def _without_repeats(a: Tensor, b: Tensor) -> tuple[list[Tensor], list[Tensor], int]:
    """Drop the dimensions along which both show the same elements; return how often they do."""
    kept = [
        at
        for at, (size, *steps) in enumerate(zip(a.shape, a.stride, b.stride, strict=True))
        if size == 0 or (size != 1 and any(steps))
    ]
    short = [
        replace(
            each,
            shape=tuple(each.shape[at] for at in kept),
            stride=tuple(each.stride[at] for at in kept),
        )
        for each in (a, b)
    ]
    return short[:1], short[1:], count(a) // max(count(short[0]), 1)


def _blocks(tensors: list[Tensor], name: str) -> Iterator[bytes]:
    for tensor in tensors:
        yield from raw_blocks(tensor, name, size=COMPUTED_BYTES)


def _side_by_side(
    a: Iterator[bytes], b: Iterator[bytes], a_item: int, b_item: int
) -> Iterator[tuple[bytes, bytes]]:
    """Yield as many elements of both at a time, however they come."""
    left = right = b""
    while True:
        if not left:
            left = next(a, b"")
        if not right:
            right = next(b, b"")
        elements = min(len(left) // a_item, len(right) // b_item)
        if not elements:
            return
        yield left[: elements * a_item], right[: elements * b_item]
        left, right = left[elements * a_item :], right[elements * b_item :]


def _of_blocks(a: bytes, b: bytes, a_type: str, b_type: str) -> Difference:
    numel = len(a) // item_bytes(a_type)
    if a_type == b_type and a == b:
        has_numbers = decoded(b"", a_type) is not None
        return Difference(numel, numel, 0 if has_numbers else None, 0.0 if has_numbers else None)
    left, right = decoded(a, a_type), decoded(b, b_type)
    if left is not None and right is not None and left.size != right.size:
        left = right = None  # one type packs two numbers into an element
    if a_type == b_type:
        is_equal = _words(a, a_type) == _words(b, b_type)
        is_equal = is_equal.reshape(numel, -1).all(axis=1)
    elif left is not None and right is not None:
        is_equal = (left == right) | ((left != left) & (right != right))
    else:
        is_equal = np.zeros(numel, bool)
    found = Difference(numel, int(np.count_nonzero(is_equal)))
    if left is not None and right is not None:
        _measure(found, left, right)
    return found


def _words(raw: bytes, dtype: str) -> Numbers:
    """Return the bits of elements as whole numbers, two for one of 16 bytes."""
    return np.frombuffer(raw, f"u{min(item_bytes(dtype), 8)}")


def _measure(found: Difference, a: Numbers, b: Numbers) -> None:
    """Find the greatest differences: those of whole numbers of one type exactly."""
    a, b = (each.view(np.uint8) if each.dtype.kind == "b" else each for each in (a, b))
    if a.dtype == b.dtype and a.dtype.kind in "iu":
        high, low = (pick(a, b).astype(np.int64, copy=False) for pick in (np.maximum, np.minimum))
        found.max_abs = int((high.view(np.uint64) - low.view(np.uint64)).max())
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        a, b = a.astype(wide), b.astype(wide)
    is_finite = np.isfinite(a) & np.isfinite(b)
    if not is_finite.all():
        is_other = ~is_finite & (a != b) & ~(np.isnan(a) & np.isnan(b))
        found.nonfinite = int(np.count_nonzero(is_other))
        a, b = a[is_finite], b[is_finite]
    with np.errstate(over="ignore"):
        apart = np.abs(a - b)
    scale = np.maximum(np.abs(a), np.abs(b))
    np.maximum(scale, np.finfo(np.float64).tiny, out=scale)
    found.max_rel = float((apart / scale).max(initial=0.0))
    if found.max_abs is None:
        found.max_abs = float(apart.max(initial=0.0))


def _add(total: Difference, found: Difference) -> None:
    total.numel += found.numel
    total.equal += found.equal
    total.nonfinite += found.nonfinite
    if found.max_abs is not None:
        total.max_abs = max(total.max_abs or 0, found.max_abs)
        total.max_rel = max(total.max_rel or 0.0, found.max_rel or 0.0)
