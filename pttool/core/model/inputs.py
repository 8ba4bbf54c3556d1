"""Make the tensors that a model is called with, from their specs."""

import contextlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from pttool.core.foreign import one_line
from pttool.core.model.spec import InputSpec
from pttool.errors import InputError, UsageError

SEED = 0


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a forward is called with."""

    positional: tuple[Tensor | list[Tensor], ...] = ()
    named: dict[str, Tensor] = field(default_factory=dict)

    def tensors(self) -> list[Tensor]:
        """Return all of them, also those in a list."""
        return tree_leaves((self.positional, self.named))


def make_inputs(
    specs: Sequence[InputSpec],
    batch: int | None,
    *,
    device: str,
    dtype: torch.dtype,
    listed: bool = False,
) -> Inputs:
    """Return one tensor per spec, its shape after the batch dimension (None: the shapes stand).

    Floating-point and complex inputs are standard normal, drawn from their own generator; integers
    and booleans are zeros, which index every embedding. `dtype` is for specs that name none.
    `listed` makes one list of images without a batch dimension, `batch` times each, for detectors.

    Raises InputError when they don't fit into memory.
    """
    generator = torch.Generator("cpu").manual_seed(SEED)
    positional: list[Tensor] = []
    named: dict[str, Tensor] = {}
    if listed:
        images = [spec.shape for spec in specs for _ in range(batch or 1)]
        return Inputs(([_tensor(shape, dtype, device, generator) for shape in images],))
    for spec in specs:
        own = batch_of(spec, batch)
        shape = spec.shape if own is None else (own, *spec.shape)
        wanted = dtype if spec.dtype is None else getattr(torch, spec.dtype)
        tensor = _tensor(shape, wanted, device, generator)
        if spec.name is None:
            positional.append(tensor)
        elif spec.name in named:
            raise UsageError(f"input {spec.name!r} is given twice", "give each name once")
        else:
            named[spec.name] = tensor
    return Inputs(tuple(positional), named)


def batch_of(spec: InputSpec, batch: int | None) -> int | None:
    """Return the batch size that an input gets: its own, unless another than 1 is asked for."""
    return spec.batch if batch == 1 and spec.batch is not None else batch


def check_call(module: nn.Module, inputs: Inputs) -> None:
    """Raise UsageError when the module's forward can't be called with so many or such inputs."""
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):  # forward is not written in Python
        return
    try:
        signature.bind(*inputs.positional, **inputs.named)
    except TypeError as error:
        given = len(inputs.positional) + len(inputs.named)
        wanted = ", ".join(map(str, signature.parameters))
        raise UsageError(
            f"{type(module).__name__}.forward can't take the {given} input(s) given: {error}",
            f"it takes ({wanted}): one -i for each, or -i NAME:D1,D2",
        ) from error


def takes_nothing(module: nn.Module) -> bool:
    """Tell whether the module's forward can be called without inputs."""
    with contextlib.suppress(TypeError, ValueError):
        inspect.signature(module.forward).bind()
        return True
    return False


def _tensor(
    shape: tuple[int, ...], dtype: torch.dtype, device: str, generator: torch.Generator
) -> Tensor:
    try:
        if device == "meta":
            return torch.empty(shape, dtype=dtype, device="meta")
        if dtype.is_floating_point or dtype.is_complex:
            return torch.randn(shape, dtype=dtype, generator=generator).to(device)
        return torch.zeros(shape, dtype=dtype, device=device)
    except (RuntimeError, OverflowError, TypeError) as error:
        # torch has no narrower ones for a size that is too large
        raise InputError(
            f"an input of shape {list(shape)}: {one_line(error)}", "give a smaller shape or batch"
        ) from error
