"""A profile as a Report: an item per op, all else in the summary."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pttool.core.profile.types import OpRow, Profile
from pttool.core.report import Column, Report

FIELDS = ("name", "calls", "self_ms", "total_ms", "self_bytes", "shapes")
COLUMNS = (
    Column("name", "Op"),
    Column("self_ms", "Self ms", "number"),
    Column("total_ms", "Total ms", "number"),
    Column("calls", "Calls", "count"),
)
BYTES_COLUMN = Column("self_bytes", "Memory", "bytes")
SHAPES_COLUMN = Column("shapes", "Shapes", "shape")

_SORT_FIELDS = {
    "self": "self_ms", "total": "total_ms", "calls": "calls", "memory": "self_bytes",
}  # fmt: skip


def report(profile: Profile, *, sort: str = "self") -> Report:
    """Return the profile as the JSON and CSV files carry it; ops sorted, the largest first."""
    ops = sorted_ops(profile.ops.rows, sort)
    columns = list(COLUMNS)
    if any(op.self_bytes is not None for op in ops):
        columns.append(BYTES_COLUMN)
    if any(op.shapes is not None for op in ops):
        columns.append(SHAPES_COLUMN)
    items = [asdict(op) for op in ops]
    return Report(FIELDS, tuple(columns), items, _summary(profile), notes=profile.notes)


def sorted_ops(ops: Sequence[OpRow], sort: str) -> list[OpRow]:
    """Return the ops by self, total, calls or memory, the largest first; equals by name."""
    field = _SORT_FIELDS[sort]
    return sorted(ops, key=lambda op: (-(getattr(op, field) or 0), op.name))


def _summary(profile: Profile) -> Mapping[str, Any]:
    steady = profile.steady
    return {
        "script": profile.script,
        "exit_code": profile.exit_code,
        "interrupted": profile.interrupted,
        "final": profile.final,
        "wall_s": profile.wall_s,
        "phases_s": dict(profile.phases_s),
        "steady": None
        if steady is None
        else {
            "steps": steady.steps,
            "wall_s": steady.wall_s,
            "phases_s": dict(steady.phases_s),
            "data_wait_fraction": steady.fraction("data_wait"),
            "compute_ms": 1000 * steady.compute_s,
        },
        "steps": profile.steps,
        "step_ms": profile.step_ms,
        "loader": profile.loader,
        "hot_lines": list(profile.hot_lines),
        "modules": list(profile.modules),
        "module_steps": profile.module_steps,
        "findings": list(profile.findings),
        "window_steps": profile.ops.steps,
        "peak_bytes": profile.ops.peak_bytes,
        "overhead_s": profile.overhead_s,
    }
