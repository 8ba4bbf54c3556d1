"""`summary`: every module call of one forward, with shapes, parameters and MACs."""

from collections.abc import Sequence
from typing import Any

from pttool.core.model.fields import FIELDS, SUMMARY_COLUMNS
from pttool.core.model.forward import run_forward
from pttool.core.model.inputs import batch_of
from pttool.core.model.parameters import FOOTER
from pttool.core.model.resolve import Resolved
from pttool.core.model.rows import item
from pttool.core.model.spec import InputSpec
from pttool.core.model.trace import Trace
from pttool.core.report import Column, Report


def summary(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    *,
    batch: int | None = 1,
    training: bool = False,
    depth: int | None = None,
) -> Report:
    """Return the rows and totals of one forward of a model.

    The inputs are `specs`, or what the model's own weights are evaluated on. Rows deeper than
    `depth` are left out; each row includes what lies below it. The module is left as it was.

    A forward that fails gives the rows reached, `partial` in the summary, and the report's
    `failure`. Raises UsageError when there is no input to use or the forward takes other ones.
    """
    forward = run_forward(resolved, specs, batch=batch, training=training)
    own_batches = (batch_of(spec, batch) for spec in resolved.default_inputs)
    about = {
        "model": resolved.name,
        "source": resolved.source,
        "weights": resolved.weights,
        "device": forward.resolved.device,
        "mode": "train" if training else "eval",
        "batch": batch if specs else next(own_batches, batch),
    }
    return Report(
        FIELDS,
        SUMMARY_COLUMNS,
        [item(level, row) for level, row in forward.rows if depth is None or level <= depth],
        {**about, **forward.totals, **_counts(forward.found)},
        (*FOOTER, *_FOOTER),
        forward.notes,
        forward.failure,
    )


_FOOTER = (
    Column("macs", "MACs", "count"),
    Column("peak_activation_bytes", "Peak activations", "bytes"),
    Column("saved_for_backward_bytes", "Saved for backward", "bytes"),
    Column("device", "Device"),
)


def _counts(found: Trace) -> dict[str, Any]:
    certain = found.flops if found.flops_before_bounds is None else found.flops_before_bounds
    return {
        "macs": found.flops // 2,
        "flops": found.flops,
        "macs_upper_bound": certain < found.flops,
        "dense_macs": certain // 2,
        "uncounted_ops": sorted(found.uncounted),
        "saved_for_backward_bytes": found.activations.saved_for_backward,
        "peak_activation_bytes": found.activations.peak,
        "output_shape": found.root.output_shape if found.root else None,
        "partial": found.error is not None,
    }
