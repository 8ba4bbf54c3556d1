"""`summary`: every module call of one forward, with shapes, parameters and MACs."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from pttool.core.imports import without_dynamo
from pttool.core.model.build import needs_values
from pttool.core.model.detection import is_detector
from pttool.core.model.fields import FIELDS, SUMMARY_COLUMNS
from pttool.core.model.foreign import one_line
from pttool.core.model.inputs import check_call, make_inputs
from pttool.core.model.isolation import borrowed
from pttool.core.model.names import buffers_by_name, parameters_by_name
from pttool.core.model.parameters import FOOTER, totals
from pttool.core.model.resolve import Resolved
from pttool.core.model.rows import Row, item, tree
from pttool.core.model.spec import InputSpec
from pttool.core.model.trace import Call, Trace, trace
from pttool.core.report import Column, Report
from pttool.errors import InputError, UsageError
from pttool.values import raw_cell


def summary(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    *,
    batch: int | None = 1,
    training: bool = False,
    depth: int | None = None,
) -> Report:
    """Return the rows and totals of one forward of a model.

    The inputs are `specs`, or what the model's own weights are evaluated at. Rows deeper than
    `depth` are left out; each row includes what lies below it. The module is left as it was.

    A forward that fails gives the rows reached, `partial` in the summary, and the report's
    `failure`. Raises UsageError when there is no input to use or the forward takes other ones.
    """
    specs = specs or _default_inputs(resolved)
    found, rows, counted = _run(resolved, specs, batch, training)
    notes = _notes(found)
    if found.error is not None and resolved.device == "meta" and needs_values(found.error):
        notes = (f"run on the CPU, since meta tensors have no values: {one_line(found.error)}",)
        resolved = resolved.on("cpu")
        found, rows, counted = _run(resolved, specs, batch, training)
        notes += _notes(found)
    items = [item(level, row) for level, row in rows if depth is None or level <= depth]
    mode = "train" if training else "eval"
    about = {"model": resolved.name, "source": resolved.source, "weights": resolved.weights,
             "device": resolved.device, "mode": mode, "batch": batch}  # fmt: skip
    return Report(
        FIELDS,
        SUMMARY_COLUMNS,
        items,
        {**about, **counted, **_counts(found)},
        (*FOOTER, *_FOOTER),
        notes,
        _failure(resolved.name, found),
    )


_FOOTER = (
    Column("macs", "MACs", "count"),
    Column("peak_activation_bytes", "Peak activations", "bytes"),
    Column("saved_for_backward_bytes", "Saved for backward", "bytes"),
    Column("device", "Device"),
)


def _default_inputs(resolved: Resolved) -> Sequence[InputSpec]:
    if not resolved.default_inputs:
        raise UsageError(
            f"{resolved.name}: names no input size of its own",
            "give the shape without the batch dimension: -i 3,224,224",
        )
    return resolved.default_inputs


def _run(
    resolved: Resolved, specs: Sequence[InputSpec], batch: int | None, training: bool
) -> tuple[Trace, list[tuple[int, Row]], dict[str, Any]]:
    """Trace one forward; return it with its rows by depth and the totals of the parameters."""
    model, device = resolved.module, resolved.device
    inputs = make_inputs(
        specs, batch, device=device, dtype=_float_type(model), listed=is_detector(model)
    )
    check_call(model, inputs)
    lean = without_dynamo() if resolved.source == "torchvision" else nullcontext()
    with lean, borrowed(model, device=device, training=training):
        found = trace(model, inputs, device=device, grad=training)
        rows = list(tree(model, found.root).in_order())
        return found, rows, totals(parameters_by_name(model), buffers_by_name(model))


def _float_type(module: nn.Module) -> torch.dtype:
    """Return the dtype of the first floating-point parameter, which inputs then have too."""
    floats = (p.dtype for p in module.parameters() if p.dtype.is_floating_point)
    return next(floats, torch.get_default_dtype())


def _counts(found: Trace) -> dict[str, Any]:
    dense = found.flops if found.flops_before_bounds is None else found.flops_before_bounds
    return {
        "macs": found.flops // 2,
        "flops": found.flops,
        "macs_upper_bound": dense < found.flops,
        "dense_macs": dense // 2,
        "uncounted_ops": sorted(found.uncounted),
        "saved_for_backward_bytes": found.activations.saved_for_backward,
        "peak_activation_bytes": found.activations.peak,
        "output_shape": found.root.output_shape if found.root else None,
        "partial": found.error is not None,
    }


def _notes(found: Trace) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    dense = found.flops_before_bounds
    if dense is not None and dense < found.flops:
        notes += (
            f"the MACs are an upper bound: {dense // 2:,} are certain, and at most "
            f"{(found.flops - dense) // 2:,} depend on how many boxes are found",
        )
    if found.uncounted:
        notes += (f"the MACs leave out {', '.join(sorted(found.uncounted))}",)
    return notes


def _failure(model: str, found: Trace) -> InputError | None:
    if found.error is None:
        return None
    error = InputError(
        f"{model}: the forward failed in {_layer(found.failing)}: {one_line(found.error)}",
        "the rows reached are shown; check the input shapes (-i) and dtypes",
    )
    error.__cause__ = found.error
    return error


def _layer(call: Call | None) -> str:
    """Name a call; of a layer without submodules, whose message torch keeps short, tell all."""
    if call is None:
        return "the model"
    is_leaf = not call.module._modules
    kind = repr(call.module) if is_leaf else type(call.module).__name__
    return f"{call.name or 'the model'}, {kind}, given {raw_cell(call.input_shape)}"
