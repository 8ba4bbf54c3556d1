"""The report of `profile model`: its items, summary and table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pttool.core.profile.measuring.module_times import ModuleTime
from pttool.core.profile.measuring.timing import Times
from pttool.core.profile.model_choices import By
from pttool.core.profile.types import OpRow
from pttool.core.report import Column, Report
from pttool.errors import PttoolError

SLOWEST = 5

_BATCHES = (
    Column("batch", "Batch", "count"),
    Column("p50_ms", "p50 ms", "number"),
    Column("p90_ms", "p90 ms", "number"),
    Column("p99_ms", "p99 ms", "number"),
    Column("images_per_s", "Images/s", "number"),
    Column("macs_per_s", "MACs/s", "number"),
    Column("ceiling_fraction", "Of ceiling", "ratio"),
    Column("peak_bytes", "Peak memory", "bytes"),
    Column("macs", "MACs", "count", optional=True),
    Column("runs", "Runs", "count", optional=True),
)
_TIMES = (
    Column("calls", "Calls", "number"),
    Column("self_ms", "Self ms", "number"),
    Column("total_ms", "Total ms", "number"),
    Column("fraction", "Share", "ratio"),
)
_MODULES = (
    Column("name", "Module", "tree"),  # for the name of the root alone
    Column("type", "Type", optional=True),
    *_TIMES,
    Column("macs", "MACs", "count", optional=True),
)
_OPS = (Column("name", "Op"), *_TIMES, Column("self_bytes", "Memory", "bytes", optional=True))
_SHAPES = Column("shapes", "Shapes", "shape")
_FOOTER = (
    Column("slowest_modules", "Slowest modules (share)", "list"),
    Column("slowest_ops", "Slowest ops (share)", "list"),
    Column("breakdown_batch", "Shares at batch", "count"),
    Column("ceiling_macs_per_s", "Ceiling, MACs/s", "count"),
    Column("threads", "Threads", "count"),
    Column("device", "Device"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found at one batch size; None is a model whose inputs have no batch dimension.

    `macs` are of one call. `modules` are for one call on average, `ops` summed over
    `breakdown_runs` of them; `module_macs` gives those of the forward by qualified name.
    """

    batch: int | None
    times: Times
    macs: int
    peak_bytes: int
    modules: Sequence[ModuleTime]
    ops: Sequence[OpRow]
    breakdown_runs: int
    module_macs: Mapping[str, int]
    notes: tuple[str, ...]


def report(
    about: Mapping[str, Any], done: Sequence[Measured], *, by: By, failure: PttoolError | None
) -> Report:
    """Return the report on all batch sizes; modules and ops are those of the largest."""
    largest = max(done, key=lambda measured: measured.batch or 0)
    modules, ops = _module_items(largest), _op_items(largest)
    summary = {
        **about,
        "breakdown_batch": largest.batch,
        "breakdown_runs": largest.breakdown_runs,
        "slowest_modules": _slowest(modules),
        "slowest_ops": _slowest(ops),
        "modules": modules,
        "ops": ops,
    }
    batches = [_batch_item(measured, about["ceiling_macs_per_s"]) for measured in done]
    items = {By.BATCH: batches, By.MODULE: modules, By.OP: ops}[by]
    with_shapes = any(row.shapes is not None for row in largest.ops)
    op_columns = (*_OPS, _SHAPES) if with_shapes else _OPS
    columns = {By.BATCH: _BATCHES, By.MODULE: _MODULES, By.OP: op_columns}[by]
    fields = tuple(column.key for column in columns)
    notes = tuple(dict.fromkeys(note for measured in done for note in measured.notes))
    return Report(fields, columns, items, summary, _FOOTER, notes + _notes(about), failure)


def _batch_item(measured: Measured, ceiling: float) -> dict[str, Any]:
    times, mean_s = measured.times, measured.times.total_s / measured.times.runs
    macs_per_s = measured.macs / mean_s
    return {
        "batch": measured.batch,
        "p50_ms": _ms(times.at(0.5)),
        "p90_ms": _ms(times.at(0.9)),
        "p99_ms": _ms(times.at(0.99)),
        "images_per_s": None if measured.batch is None else round(measured.batch / mean_s, 3),
        "macs_per_s": round(macs_per_s),
        "ceiling_fraction": round(macs_per_s / ceiling, 6),
        "peak_bytes": measured.peak_bytes,
        "macs": measured.macs,
        "runs": times.runs,
    }


def _module_items(measured: Measured) -> list[dict[str, Any]]:
    whole = sum(module.self_ms for module in measured.modules)
    return [
        {
            **asdict(module),
            "calls": _whole(module.calls),
            "self_ms": round(module.self_ms, 6),
            "total_ms": round(module.total_ms, 6),
            "fraction": _fraction(module.self_ms, whole),
            "macs": measured.module_macs.get(module.name),
        }
        for module in measured.modules
    ]


def _op_items(measured: Measured) -> list[dict[str, Any]]:
    runs, whole = measured.breakdown_runs, sum(row.self_ms for row in measured.ops)
    return [
        {
            "name": row.name,
            "calls": _whole(row.calls / runs),
            "self_ms": round(row.self_ms / runs, 6),
            "total_ms": round(row.total_ms / runs, 6),
            "fraction": _fraction(row.self_ms, whole),
            "self_bytes": None if row.self_bytes is None else round(row.self_bytes / runs),
            "shapes": row.shapes,
        }
        for row in measured.ops
    ]


def _slowest(items: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {item["name"] or "(root)": item["fraction"] for item in items[:SLOWEST]}


def _notes(about: Mapping[str, Any]) -> tuple[str, ...]:
    if about["compiled"]:
        return ("torch.compile leaves no modules that could be timed",)
    if about["mode"] == "train":
        return ("the times of modules are those of the forward alone",)
    return ()


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 6)


def _whole(calls: float) -> float:
    """Return a whole number as such, so that it is written without decimals."""
    return int(calls) if calls.is_integer() else calls


def _fraction(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None
