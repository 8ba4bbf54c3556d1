"""Pick free GPUs, and write them as CUDA_VISIBLE_DEVICES takes them."""

import os
import time
from collections.abc import Sequence
from typing import Any

from pttool.core.gpu.locks import picking_lock, unlocked
from pttool.core.gpu.picking import Conditions, Judged, fitting, judge, outside_note
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.style import Style
from pttool.core.gpu.visible import visible_here
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, UnavailableError, UsageError

FIELDS = ("index", "uuid", "name", "mig_index", "free_bytes", "utilization_percent")
COLUMNS = (
    Column("index", "GPU"),
    Column("name", "Name"),
    Column("free_bytes", "Free", "bytes"),
    Column("uuid", "UUID"),
)
ORDER = "CUDA_DEVICE_ORDER"
BY_BUS = "PCI_BUS_ID"
LOCK_WAIT_S = 10.0


class TooFewError(CheckFailedError):
    """Too few GPUs fit; the hint says why each doesn't. Waiting may help where it `can_pass`."""

    def __init__(self, message: str, reasons: str, can_pass: bool) -> None:
        super().__init__(message, reasons)
        self.can_pass = can_pass


def pick(conditions: Conditions, style: Style = Style.UUID) -> Report:
    """Return the GPUs to use, the best first; all that are wanted, or a TooFewError.

    Best is the most free memory. What `gpu run` has locked is not free, even if its job hasn't
    begun to compute. `summary["text"]` is what a shell takes: UUIDs, indices in the order of PCI
    buses, or a line that exports them; for a GPU in MIG mode, its instances' UUIDs. Raises
    NoDriverError without a driver or GPU, UsageError for indices of MIG instances.
    """
    snapshot = take_snapshot()
    seen = visible_here(snapshot.gpus)
    judged = judge(snapshot, conditions, seen)
    free = _not_booked(fitting(judged), conditions.count)
    if len(free) < conditions.count:
        raise lacking(judged, len(free), conditions.count)
    report = _report(free, judged, style)
    outside = outside_note(free, seen)
    return report if outside is None else report.noting(outside)


def lacking(judged: Sequence[Judged], free: int, wanted: int) -> TooFewError:
    """Return the failure where so many GPUs are free and not booked: why each other one isn't."""
    reasons = [f"{each.name}: {each.against.reason}" for each in judged if each.against]
    booked = len(judged) - len(reasons) - free
    if booked:
        reasons.append(f"pttool gpu run has booked {booked}")
    if len(judged) < wanted:
        reasons.insert(0, f"there {'is' if len(judged) == 1 else 'are'} {len(judged)} in all")
    possible = sum(each.may_fit_later for each in judged)
    what = "1 GPU is" if wanted == 1 else f"{wanted} GPUs are"
    return TooFewError(f"{what} wanted, and {free} free", "; ".join(reasons), possible >= wanted)


def _not_booked(fitting: Sequence[Judged], count: int) -> list[Judged]:
    """Return as many as are wanted, of those that no job of `gpu run` has booked."""
    try:
        with picking_lock(time.monotonic() + LOCK_WAIT_S) as is_alone:
            free = unlocked([each.uuid for each in fitting]) if is_alone else []
    except UnavailableError:  # without a folder for locks nobody holds one
        return list(fitting[:count])
    return [each for each in fitting if each.uuid in free][:count]


def _report(picked: Sequence[Judged], judged: Sequence[Judged], style: Style) -> Report:
    uuids = ",".join(each.uuid for each in picked)
    text = {
        Style.UUID: uuids,
        Style.INDEX: ",".join(str(each.gpu.index) for each in picked),
        Style.EXPORT: f"export {ORDER}={BY_BUS} CUDA_VISIBLE_DEVICES={uuids}",
    }[style]
    instances = [each.name for each in picked if each.instance is not None]
    if style is Style.INDEX and instances:
        raise UsageError(f"{instances[0]}: CUDA takes it by its UUID only", "--format uuid")
    summary = {"text": text, "uuids": [each.uuid for each in picked]}
    notes = (_order_note(),) if style is Style.INDEX and _may_differ(judged) else ()
    return Report(FIELDS, COLUMNS, [_item(each) for each in picked], summary, notes=notes)


def _may_differ(judged: Sequence[Judged]) -> bool:
    """Whether CUDA's default order, the fastest first, may not be that of the buses."""
    names = {each.gpu.name for each in judged}
    return os.environ.get(ORDER) != BY_BUS and len(names) > 1


def _order_note() -> str:
    return (
        f"CUDA numbers the fastest GPU 0 unless {ORDER}={BY_BUS} is set, and these numbers are "
        "by bus: set it, or use --format export"
    )


def _item(picked: Judged) -> dict[str, Any]:
    memory, instance = picked.memory, picked.instance
    return {
        "index": picked.gpu.index,
        "uuid": picked.uuid,
        "name": picked.gpu.name if instance is None else instance.name,
        "mig_index": None if instance is None else instance.index,
        "free_bytes": None if memory is None else memory.free_bytes,
        "utilization_percent": picked.gpu.utilization_percent if instance is None else None,
    }
