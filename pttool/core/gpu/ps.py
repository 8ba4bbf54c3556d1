"""Who holds which GPU: what NVML lists, and who has a device file open besides."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pttool.core.gpu.faults import unhealthy
from pttool.core.gpu.holders import Holders, find_holders
from pttool.core.gpu.listing import ProcessRow, hidden_rows, listed_rows, unlisted_rows
from pttool.core.gpu.selection import select
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.types import Gpu, Snapshot
from pttool.core.report import Column, Report

FIELDS = (
    "gpu_index", "gpu_uuid", "mig_uuid", "pid", "user", "command", "memory_bytes", "type",
    "started_at", "visible", "hidden", "orphan",
)  # fmt: skip
COLUMNS = (
    Column("gpu_index", "GPU"),
    Column("pid", "PID"),
    Column("user", "User"),
    Column("type", "Type"),
    Column("memory_bytes", "Memory", "bytes"),
    Column("started_at", "Started", optional=True),
    Column("remarks", "Remarks"),
    Column("command", "Command"),
)
FOOTER = (
    Column("processes", "Processes", "count"),
    Column("hidden", "Hidden", "count"),
    Column("orphans", "Orphans", "count"),
)


def ps(names: Sequence[str] = ()) -> Report:
    """Return a row for each process on a GPU; `names` are indices or UUIDs, none are all.

    A process that only holds nvidiactl or nvidia-uvm open has no GPU, and is listed where all GPUs
    are asked for. The report fails where a GPU is not healthy. Raises NoDriverError without a
    driver or GPU, and UsageError for a name that is no GPU.
    """
    snapshot = take_snapshot()
    gpus = select(snapshot.gpus, names)
    holders = find_holders()
    items = [item for gpu in gpus for item in _of_gpu(gpu, snapshot, holders)]
    if not names:
        items += _of_no_gpu(snapshot, holders)
    summary = {
        "processes": len({item["pid"] for item in items}),
        "hidden": len({item["pid"] for item in items if item["hidden"]}),
        "orphans": len({item["pid"] for item in items if item["orphan"]}),
    }
    notes = tuple(_notes(gpus, holders))
    return Report(FIELDS, COLUMNS, items, summary, FOOTER, notes, unhealthy(gpus))


def _of_gpu(gpu: Gpu, snapshot: Snapshot, holders: Holders) -> Iterator[dict[str, Any]]:
    for row in listed_rows(gpu.processes or ()):
        yield _item(row, gpu)
    for instance in gpu.instances:
        for row in listed_rows(instance.processes or ()):
            yield _item(row, gpu, instance.uuid)
    for row in hidden_rows(gpu, snapshot, holders):
        yield _item(row, gpu)


def _of_no_gpu(snapshot: Snapshot, holders: Holders) -> list[dict[str, Any]]:
    others = holders.of_no_gpu(snapshot.gpus)
    return [_item(row, None) for row in unlisted_rows(others, snapshot)]


def _item(row: ProcessRow, gpu: Gpu | None, mig_uuid: str | None = None) -> dict[str, Any]:
    return {
        "gpu_index": None if gpu is None else gpu.index,
        "gpu_uuid": None if gpu is None else gpu.uuid,
        "mig_uuid": mig_uuid,
        **asdict(row),
        "remarks": ", ".join(_remarks(row, mig_uuid)),
    }


def _remarks(row: ProcessRow, mig_uuid: str | None) -> Iterator[str]:
    if mig_uuid is not None:
        yield mig_uuid
    if not row.visible:
        yield "not visible here: in another PID namespace"
    if row.hidden:
        yield "hidden: holds the device open"
    if row.orphan:
        yield "orphan"


def _notes(gpus: Sequence[Gpu], holders: Holders) -> Iterator[str]:
    for gpu in gpus:
        if gpu.is_healthy and gpu.processes is None:
            yield f"GPU {gpu.index}: processes n/a: {gpu.errors.get('processes')}"
    if holders.note is not None:
        yield holders.note
