"""What the elements of a tensor come to, read block by block."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pttool.core.ckpt.tensors.decoding import Numbers, decoded
from pttool.core.ckpt.tensors.elements import COMPUTED_BYTES, count, raw_blocks
from pttool.core.ckpt.tensors.pieces import (
    MOST_REPEATS,
    each_once,
    plain_parts,
    repeats,
    why_unreadable,
)
from pttool.core.ckpt.types import Tensor


@dataclass(frozen=True, slots=True)
class Stats:
    """Least and greatest element but for NaN, mean of the finite ones, and counts.

    None is unknown: all of it where elements can't be read as numbers; min, max and mean of a
    tensor without such elements, or of complex ones, which have no order.
    """

    min: float | int | None = None
    max: float | int | None = None
    mean: float | None = None
    nan: int | None = None
    inf: int | None = None


def statistics_of(tensor: Tensor, name: str) -> Stats:
    """Read the elements of a tensor and return what they come to, equal to torch's on float64.

    Of a sparse or nested tensor those that are stored, of a distributed one those of all chunks;
    bool counts as 0 and 1. Nothing is known of a quantized one, whose scale is not read, of one
    whose elements are not in the file, and of types without numbers. Raises InputError, with the
    tensor's `name`, for elements that can't be read.
    """
    pieces = plain_parts(tensor)
    if not pieces or not all(map(_has_numbers, pieces)):
        return Stats()
    total = _Total()
    for piece in pieces:
        seen = each_once(piece)
        times = count(piece) // max(count(seen), 1)
        for block in raw_blocks(seen, name, size=COMPUTED_BYTES):
            numbers = decoded(block, seen.dtype)
            if numbers is not None:
                total.add(numbers, times)
    return total.stats()


def _has_numbers(tensor: Tensor) -> bool:
    """Whether the elements are numbers that can be read; a view that repeats them is not worth it.

    Those of a quantized tensor are no numbers without its scale.
    """
    return (
        tensor.layout != "quantized"
        and why_unreadable(tensor) is None
        and decoded(b"", tensor.dtype) is not None
        and repeats(each_once(tensor)) <= MOST_REPEATS
    )


@dataclass(slots=True)
class _Total:
    """Adds up blocks of elements."""

    lows: list[Any] = field(default_factory=list)
    highs: list[Any] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    finite: int = 0
    nan: int = 0
    inf: int = 0
    has_order: bool = True

    def add(self, numbers: Numbers, times: int) -> None:
        """Add elements, each of which occurs so many times."""
        if numbers.dtype.kind == "b":
            numbers = numbers.view(np.uint8)
        self.has_order = numbers.dtype.kind != "c"
        finite = numbers
        if numbers.dtype.kind in "fc":
            is_finite = np.isfinite(numbers)
            if not is_finite.all():
                finite = numbers[is_finite]
                nan = int(np.isnan(numbers).sum())
                self.nan += nan * times
                self.inf += (numbers.size - finite.size - nan) * times
                numbers = numbers[~np.isnan(numbers)]
        self.finite += finite.size * times
        if self.has_order and numbers.size:
            self.lows.append(numbers.min().item())
            self.highs.append(numbers.max().item())
            with np.errstate(over="ignore"):
                self.sums.append(float(finite.sum(dtype=np.float64)) * times)

    def stats(self) -> Stats:
        """Return what was added."""
        mean = _sum(self.sums) / self.finite if self.has_order and self.finite else None
        return Stats(
            min(self.lows, default=None),
            max(self.highs, default=None),
            mean if mean is None or math.isfinite(mean) else None,
            self.nan,
            self.inf,
        )


def _sum(parts: list[float]) -> float:
    return math.fsum(parts) if all(map(math.isfinite, parts)) else math.inf
