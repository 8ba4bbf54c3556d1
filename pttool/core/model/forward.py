"""One forward of a resolved model, from specs to rows: what several verbs start from."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from pttool.core.foreign import foreign_code, one_line
from pttool.core.imports import without_dynamo
from pttool.core.model.build import needs_values
from pttool.core.model.detection import is_detector
from pttool.core.model.inputs import Inputs, check_call, make_inputs, takes_nothing
from pttool.core.model.isolation import borrowed
from pttool.core.model.names import buffers_by_name, parameters_by_name
from pttool.core.model.parameters import lazy_note, totals
from pttool.core.model.resolve import Resolved
from pttool.core.model.rows import Row, tree
from pttool.core.model.spec import InputSpec
from pttool.core.model.trace import Call, Trace, trace
from pttool.errors import InputError, UsageError


@dataclass(frozen=True, slots=True)
class Forward:
    """What one forward showed: its rows with their depths, and the totals of the parameters."""

    resolved: Resolved
    found: Trace
    rows: list[tuple[int, Row]]
    totals: dict[str, Any]
    failing_layer: str
    notes: tuple[str, ...] = ()

    @property
    def failure(self) -> InputError | None:
        """The error of a forward that did not end, naming the layer."""
        if self.found.error is None:
            return None
        error = InputError(
            f"{self.resolved.name}: the forward failed in {self.failing_layer}: "
            f"{one_line(self.found.error)}",
            "what was reached is shown; check the shapes and dtypes of the inputs",
        )
        error.__cause__ = self.found.error
        return error


def run_forward(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    *,
    batch: int | None = 1,
    training: bool = False,
) -> Forward:
    """Run a model once on `specs`, or on its own default inputs, and leave it as it was.

    On meta, a forward that reads the values of tensors is run again on the CPU; a note says so.
    Raises UsageError when there is no input to use or the forward takes other ones, InputError for
    a state dict.
    """
    if resolved.is_state_dict:
        raise InputError(
            f"{resolved.name}: is a state dict, weights without a model to run",
            f"pttool model params {resolved.name} lists them",
        )
    specs = specs or _default_inputs(resolved)
    if isinstance(resolved.module, torch.jit.ScriptModule) and resolved.device == "meta":
        resolved = replace(resolved, device="cpu")  # it stays where it was loaded
    forward = _run(resolved, specs, batch, training)
    error = forward.found.error
    if error is None or resolved.device != "meta" or not needs_values(error):
        return forward
    note = f"run on the CPU, since meta tensors have no values: {one_line(error)}"
    return _run(resolved.on("cpu"), specs, batch, training, (note,))


def inputs_for(
    model: nn.Module, specs: Sequence[InputSpec], batch: int | None, device: str
) -> Inputs:
    """Return the tensors that a model is called with, in its own floating-point type."""
    floats = (p.dtype for p in model.parameters() if p.dtype.is_floating_point)
    dtype = next(floats, torch.get_default_dtype())
    return make_inputs(specs, batch, device=device, dtype=dtype, listed=is_detector(model))


def _default_inputs(resolved: Resolved) -> Sequence[InputSpec]:
    if not resolved.default_inputs and not takes_nothing(resolved.module):
        raise UsageError(
            f"{resolved.name}: names no input size of its own",
            "give the shape without the batch dimension: -i 3,224,224",
        )
    return resolved.default_inputs


def _run(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    batch: int | None,
    training: bool,
    notes: tuple[str, ...] = (),
) -> Forward:
    model, device = resolved.module, resolved.device
    with foreign_code(resolved.name):  # a model's own parameters() may do anything
        inputs = inputs_for(model, specs, batch, device)
    check_call(model, inputs)
    with without_dynamo(), foreign_code(resolved.name), on_loan(resolved, training=training):
        found = trace(model, inputs, device=device, grad=training)
        rows = list(tree(model, found.root).in_order())
        parameters = parameters_by_name(model)
        counted = totals(parameters, buffers_by_name(model))
        notes += _notes(found) + lazy_note(parameters)
        layer = _layer(found.failing)
    if found.error is not None:
        rows = [(depth, row) for depth, row in rows if row.calls]
    return Forward(resolved, found, rows, counted, layer, notes)


def on_loan(resolved: Resolved, *, training: bool) -> AbstractContextManager[None]:
    """Return the context in which a resolved model may be run."""
    ours = resolved.construction is not None
    return borrowed(resolved.module, device=resolved.device, training=training, ours=ours)


def _notes(found: Trace) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    certain = found.flops_before_bounds
    if certain is not None and certain < found.flops:
        notes += (
            f"the MACs are an upper bound: {certain // 2:,} are certain, and at most "
            f"{(found.flops - certain) // 2:,} depend on how many boxes are found",
        )
    if found.uncounted:
        notes += (f"the MACs leave out {', '.join(sorted(found.uncounted))}",)
    return notes


def _layer(call: Call | None) -> str:
    """Name a call; of a layer without submodules, whose message torch keeps short, tell all."""
    if call is None:
        return "the model"
    is_leaf = not call.module._modules
    kind = repr(call.module) if is_leaf else type(call.module).__name__
    return f"{call.name or 'the model'}, {kind}, given {call.input_shape}"
