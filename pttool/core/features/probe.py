"""Which modules a forward calls and what they return, found before any picture is read."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from pttool.core.features.aliases import aliases
from pttool.core.features.outputs import kind_of, tensors_in
from pttool.core.features.types import Layer, Output, Part
from pttool.core.model.forward import Forward, run_forward
from pttool.core.model.names import Names
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.model.trace import hooked
from pttool.errors import InputError

# A second batch size, to tell a batch dimension from one that merely is 1.
SEVERAL = 3


@dataclass(frozen=True, slots=True)
class Probe:
    """The layers in the order of their first calls, the never called last; and what to tell.

    `failure` is the error of a forward that didn't end: the layers are those it reached.
    """

    layers: tuple[Layer, ...]
    device: str
    notes: tuple[str, ...] = ()
    failure: InputError | None = None


def probe(resolved: Resolved, specs: Sequence[InputSpec]) -> Probe:
    """Run a model once for one picture and once for three, and return its layers.

    On the device "meta" no weights are needed and nothing is computed, but for models that read
    the values of tensors. `specs` are the inputs, or else the model's own.

    Raises InputError for TorchScript and exported programs, whose layers can't be seen, and as
    `model.forward.run_forward` does.
    """
    if isinstance(resolved.module, torch.jit.ScriptModule) or resolved.source == "torch.export":
        raise InputError(
            f"{resolved.name}: {resolved.source} runs as one, its layers can't be seen",
            "give the model that it was made from",
        )
    forward, single = _observe(resolved, specs, 1)
    _, several = _observe(forward.resolved, specs, SEVERAL)
    module = forward.resolved.module
    layers = tuple(_layers(module, single, several))
    # What the forward of a summary tells of operations is of no interest here.
    notes = tuple(note for note in forward.notes if not note.startswith("the MACs"))
    return Probe(layers, forward.resolved.device, notes, forward.failure)


def _observe(
    resolved: Resolved, specs: Sequence[InputSpec], batch: int
) -> tuple[Forward, "_Observed"]:
    observed = _Observed(resolved.module)
    with hooked(resolved.module, observed.enter, observed.leave):
        forward = run_forward(resolved, specs, batch=batch)
    if forward.resolved.device != resolved.device:  # meta would not do, and another module ran
        return _observe(forward.resolved, specs, batch)
    return forward, observed


class _Observed:
    """Hooks that note what each module returned, by its first name, and what else it is called."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._first_names = {id(module): name for name, module in model.named_modules()}
        self._names = Names(model)
        self._inside: list[tuple[nn.Module, str]] = []
        self.outputs: dict[str, list[Output]] = {}
        self.names: dict[str, set[str]] = {}

    def enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if module is self._model:  # a model with lazy parameters is run twice: the last run counts
            self.outputs, self._inside = {}, [(module, "")]
            return
        caller, caller_name = self._inside[-1] if self._inside else (self._model, "")
        name = self._names.of(module, caller, caller_name)
        first = self._first_names[id(module)]
        self.outputs.setdefault(first, [])  # in the order in which the calls begin
        self.names.setdefault(first, set()).add(name)
        self._inside.append((module, name))

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if self._inside and self._inside[-1][0] is module:
            self._inside.pop()
        raised = output is None and sys.exc_info()[1] is not None
        if module is not self._model and not raised:
            self.outputs[self._first_names[id(module)]].append(_without_values(output))


def _without_values(output: Any) -> Output:
    parts = []
    for keys, tensor in tensors_in(output):
        dtype = str(tensor.dtype).removeprefix("torch.")
        size = tensor.numel() * tensor.element_size()
        parts.append(Part(keys, tuple(tensor.shape), dtype, size))
    return Output(kind_of(output), tuple(parts))


def _layers(model: nn.Module, single: _Observed, several: _Observed) -> Iterator[Layer]:
    """Yield the modules in the order of their first calls, the never called ones last."""
    modules = dict(model.named_modules())
    papers: dict[str, list[str]] = {}
    for alias, name in aliases(model).items():
        papers.setdefault(name, []).append(alias)
    for name in {**dict.fromkeys(single.outputs), **dict.fromkeys(modules)}:
        if name:
            outputs = _with_rows(single.outputs.get(name, []), several.outputs.get(name, []))
            others = sorted(single.names.get(name, set()) - {name})
            known = (*papers.get(name, ()), *others)
            yield Layer(name, type(modules[name]).__name__, tuple(outputs), known)


def _with_rows(single: list[Output], several: list[Output]) -> Iterator[Output]:
    """Yield the outputs for one picture, with bytes only where three pictures give three rows."""
    for call, output in enumerate(single):
        other = several[call] if call < len(several) else None
        yield replace(output, parts=tuple(_with_row(part, other) for part in output.parts))


def _with_row(part: Part, several: Output | None) -> Part:
    twin = several and several.part(part.keys)
    if twin and part.shape[:1] == (1,) and twin.shape == (SEVERAL, *part.shape[1:]):
        return part
    return replace(part, bytes_per_image=None)
