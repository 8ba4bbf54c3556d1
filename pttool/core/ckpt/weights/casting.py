"""Turn floating elements into another floating type, block by block."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pttool.errors import UnavailableError, UsageError

# What can be cast; the others of torch's floating types are packed, or scales without a sign.
CASTABLE = (
    "float64", "float32", "float16", "bfloat16",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
)  # fmt: skip
SHORT_NAMES = {
    "double": "float64", "float": "float32", "half": "float16",
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "f64": "float64", "f32": "float32", "f16": "float16", "fp8": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2",
}  # fmt: skip


def floating_type(name: str) -> str:
    """Return torch's name of a floating type. Raises UsageError for another."""
    known = SHORT_NAMES.get(name.lower(), name.lower().removeprefix("torch."))
    if known not in CASTABLE:
        raise UsageError(f"{name}: is no floating type", f"one of {', '.join(CASTABLE)}")
    return known


@dataclass(slots=True)
class Casting:
    """The type that floating tensors of some names become, and what overflowed on the way.

    `overflows` counts, by name, the finite elements that are beyond the range of the new type.
    """

    names: frozenset[str]
    dtype: str
    overflows: dict[str, int] = field(default_factory=dict)

    def target(self, name: str, dtype: str) -> str | None:
        """Return the type that a tensor becomes, or None if it stays as it is."""
        is_cast = name in self.names and dtype in CASTABLE and dtype != self.dtype
        return self.dtype if is_cast else None

    def blocks(
        self, name: str, dtype: str, elements: Callable[[], Iterator[bytes]]
    ) -> Iterator[bytes]:
        """Yield blocks of elements of a type as blocks of the new one, rounded as torch does."""
        torch: Any = _torch()
        old, new = getattr(torch, dtype), getattr(torch, self.dtype)
        lost = 0
        for block in elements():
            numbers = torch.frombuffer(bytearray(block), dtype=old)
            cast = numbers.to(new)
            lost += _overflowed(_computable(numbers), _computable(cast), torch.finfo(new))
            yield cast.view(torch.uint8).numpy().tobytes()
        if lost:
            self.overflows[name] = lost


def _computable(numbers: Any) -> Any:
    return numbers.float() if numbers.dtype.itemsize == 1 else numbers


def _overflowed(numbers: Any, cast: Any, finfo: Any) -> int:
    """Return how many finite numbers the new type has none near.

    torch makes infinity, NaN or the largest number of them, by the type.
    """
    sizes = numbers.abs()
    if (sizes <= finfo.max).all():
        return 0
    half_a_step = math.ldexp(finfo.eps, math.frexp(finfo.max)[1] - 2)
    is_beyond = (sizes > finfo.max + half_a_step) | ~cast.isfinite()
    return int((sizes.isfinite() & is_beyond).sum())


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread for a while.

    What is done with a block is so little that waiting for other threads took ten times as long on
    a busy machine. Raises UnavailableError without torch.
    """
    torch: Any = _torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UnavailableError("cast needs torch", "pip install torch") from error
    return torch
