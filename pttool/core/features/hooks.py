"""Run a model on pictures and take what chosen modules return, by forward hooks that clone."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pttool.core.features.outputs import tensors_in
from pttool.core.features.pooling import pooled
from pttool.core.features.types import Pool, Wanted
from pttool.core.foreign import foreign_code
from pttool.core.model.detection import is_detector
from pttool.errors import InputError, UsageError


class Capture:
    """Takes the outputs of layers for one batch after another; `close` takes the hooks away.

    Outputs are cloned at the hook: a later operation in place, as ReLU often is, would change them.
    The forward ends after the last wanted layer, unless it is compiled. The module is run as it is,
    on its own device and in its own mode. Nothing but `amp` (autocast), `channels_last` and
    `compiled` (torch.compile) changes bits.
    """

    def __init__(
        self,
        module: nn.Module,
        wanted: Sequence[Wanted],
        *,
        name: str = "the model",
        pool: Pool = Pool.NONE,
        amp: bool = False,
        channels_last: bool = False,
        compiled: bool = False,
    ) -> None:
        self._name = name
        self._wanted = wanted
        self._pool = pool
        self._amp = amp
        self._layout = torch.channels_last if channels_last else torch.contiguous_format
        self._listed = is_detector(module)
        self._stops_early = not compiled
        self._like = _tensor_like(module)
        if channels_last:
            module.to(memory_format=torch.channels_last)
        self._batch, self._square = 0, True
        self._calls: Counter[str] = Counter()
        self._taken: dict[str, Tensor] = {}
        self._handles = self._hook(module)
        self._module: Callable[..., Any] = torch.compile(module) if compiled else module

    def __call__(self, batch: Tensor) -> dict[str, Tensor]:
        """Return {layer: its output (B, ...)} for pictures (B, C, H, W), on the CPU.

        Outputs are contiguous and have the layer's own dtype.

        Raises InputError when the forward fails or doesn't reach a layer, UsageError for a layer
        that gives no row for each picture or can't be pooled as asked.
        """
        self._batch, self._square = len(batch), batch.shape[-2] == batch.shape[-1]
        self._calls.clear()
        self._taken.clear()
        pictures = batch.to(self._like.device, self._like.dtype, memory_format=self._layout)
        with (
            foreign_code(self._name),
            torch.inference_mode(),
            torch.autocast(self._like.device.type, enabled=self._amp),
            contextlib.suppress(_AllTakenError),
        ):
            self._module(list(pictures) if self._listed else pictures)
        taken, self._taken = self._taken, {}
        for one in self._wanted:
            if one.layer not in taken:
                raise InputError(
                    f"{self._name}: {one.layer} was not reached for these pictures",
                    "its forward takes another way for other values; take another layer",
                )
        return {one.layer: taken[one.layer] for one in self._wanted}

    def close(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    def _hook(self, module: nn.Module) -> list[torch.utils.hooks.RemovableHandle]:
        by_module: defaultdict[str, list[Wanted]] = defaultdict(list)
        for one in self._wanted:
            by_module[one.module].append(one)
        modules = dict(module.named_modules())
        return [
            modules[name].register_forward_hook(self._taking(name, wanted))
            for name, wanted in by_module.items()
        ]

    def _taking(self, name: str, wanted: Sequence[Wanted]) -> Callable[..., None]:
        def take(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            call = self._calls[name]
            self._calls[name] += 1
            for one in wanted:
                if one.call == call:
                    self._taken[one.layer] = self._row_for_each(one, output)
            if self._stops_early and len(self._taken) == len(self._wanted):
                raise _AllTakenError

        return take

    def _row_for_each(self, one: Wanted, output: Any) -> Tensor:
        tensor = dict(tensors_in(output)).get(one.keys)
        if tensor is None or tensor.shape[:1] != (self._batch,):
            raise UsageError(
                f"-l {one.layer}: gives no row for each picture",
                "pttool features layers MODEL lists what each layer gives",
            )
        kept = pooled(tensor, self._pool, square=self._square, layer=one.layer)
        return kept.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


class _AllTakenError(BaseException):
    """Ends a forward; not an Exception, which a model might catch."""


def _tensor_like(module: nn.Module) -> Tensor:
    """Return a tensor of the device and the floating-point type that a module's own have."""
    floats = (t for t in (*module.parameters(), *module.buffers()) if t.is_floating_point())
    return next(floats, torch.empty(0))
