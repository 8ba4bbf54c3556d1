"""`profile model`: how fast a model runs at each batch size, and where the time goes."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite

import torch

from pttool.core.model.forward import Forward, run_forward
from pttool.core.model.inputs import batch_of
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.profile.measuring.ceiling import matmul_ceiling
from pttool.core.profile.measuring.module_times import module_times
from pttool.core.profile.measuring.op_times import op_times
from pttool.core.profile.measuring.report import Measured, report
from pttool.core.profile.measuring.running import (
    Conditions,
    Runnable,
    backward_macs,
    running,
    threads,
)
from pttool.core.profile.measuring.timing import FEWEST_RUNS, Times, time_calls
from pttool.core.profile.model_choices import By
from pttool.core.report import Report
from pttool.errors import InputError, UsageError

Progress = Callable[[int, int, int], None]
# What looking into the calls may take of the time for timing them, and how many it needs.
BREAKDOWN_SHARE = 0.25
MOST_BREAKDOWN_RUNS = 30
CEILING_TIME_S = 0.1


def model(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    *,
    batches: Sequence[int | None],
    conditions: Conditions,
    by: By = By.BATCH,
    by_shape: bool = False,
    progress: Progress = lambda done, total, failed: None,
) -> Report:
    """Return an item for each batch size: percentiles of the time of a call, throughput, memory.

    The inputs are `specs`, or the model's own; batch None takes their shapes as they are. Modules
    and ops are those of the largest batch, for one call on average; `by` makes them the items, and
    `by_shape` tells ops with inputs of other shapes apart. MACs are counted, not measured: those of
    the forward, in training also of the backward. The module is left as it was.

    A batch that fails, as where memory runs out, gives the batches before it and the report's
    `failure`. Raises UsageError when there is no input to use, InputError for a state dict or when
    no batch was done.
    """
    if not isfinite(conditions.min_time_s):
        raise UsageError("--min-time: no end", "give seconds, as 2")
    done: list[Measured] = []
    failure: InputError | None = None
    with threads(conditions.threads) as thread_count:
        for batch in batches:
            progress(len(done), len(batches), 0)
            try:
                done.append(_measured(resolved, specs, batch, conditions, by_shape))
            except InputError as error:
                if not done:
                    raise
                failure = error
                break
        seconds = min(conditions.min_time_s, CEILING_TIME_S)
        ceiling = matmul_ceiling(device=resolved.device, dtype=_dtype(resolved), min_time_s=seconds)
    about = {
        "model": resolved.name,
        "source": resolved.source,
        "device": resolved.device,
        "dtype": str(_dtype(resolved)).removeprefix("torch."),
        "mode": "train" if conditions.training else "eval",
        "channels_last": conditions.channels_last,
        "compiled": conditions.compiled,
        "threads": thread_count,
        "torch": torch.__version__,
        "ceiling_macs_per_s": round(ceiling),
    }
    return report(about, done, by=by, failure=failure)


def _dtype(resolved: Resolved) -> torch.dtype:
    floats = (p.dtype for p in resolved.module.parameters() if p.dtype.is_floating_point)
    return next(floats, torch.get_default_dtype())


def _measured(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    batch: int | None,
    conditions: Conditions,
    by_shape: bool,
) -> Measured:
    """Count one forward, time calls, then look into some more of them."""
    forward = run_forward(resolved, specs, batch=batch, training=conditions.training)
    if forward.failure is not None:
        raise InputError(
            forward.failure.message, "check the shapes and dtypes of the inputs"
        ) from forward.failure
    specs = specs or resolved.default_inputs
    device = resolved.device
    with running(resolved, specs, batch, conditions) as runnable:
        times = time_calls(runnable.call, device=device, min_time_s=conditions.min_time_s)
        runs = _breakdown_runs(times, conditions.min_time_s)
        macs, notes = _macs(forward, runnable, conditions)
        modules = (
            []
            if conditions.compiled
            else module_times(runnable.module, runnable.call, device=device, runs=runs)
        )
        ops = op_times(runnable.call, device=device, runs=runs, by_shape=by_shape)
        resident = runnable.resident_bytes
    sizes = [batch_of(spec, batch) for spec in specs]
    return Measured(
        batch=next(iter(sizes), batch),
        times=times,
        macs=macs,
        peak_bytes=resident + (ops.peak_bytes or 0),
        modules=modules,
        ops=ops.rows,
        breakdown_runs=runs,
        module_macs=_macs_by_name(forward),
        notes=notes,
    )


def _macs_by_name(forward: Forward) -> Counter[str]:
    """Return the MACs of all calls of each module, with what lies inside."""
    macs: Counter[str] = Counter()
    for _, row in forward.rows:
        macs[row.name] += row.flops // 2
    return macs


def _breakdown_runs(times: Times, min_time_s: float) -> int:
    fitting = int(BREAKDOWN_SHARE * min_time_s * times.runs / times.total_s)
    return min(max(fitting, FEWEST_RUNS), MOST_BREAKDOWN_RUNS)


def _macs(
    forward: Forward, runnable: Runnable, conditions: Conditions
) -> tuple[int, tuple[str, ...]]:
    """Return the MACs of one call, and what there is to say about them."""
    macs = forward.found.flops // 2
    if not conditions.training:
        return macs, forward.notes
    backward, uncounted = backward_macs(runnable)
    notes = forward.notes
    if uncounted:
        notes += (f"the MACs leave out {', '.join(sorted(uncounted))}",)
    return macs + backward, notes
