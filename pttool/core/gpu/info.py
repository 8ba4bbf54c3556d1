"""What there is to know of each GPU, and of each MIG instance as a row of its own."""

from collections.abc import Iterator, Sequence
from typing import Any

from pttool.core.gpu.faults import unhealthy
from pttool.core.gpu.holders import find_holders
from pttool.core.gpu.listing import UNKNOWN, ProcessRow, hidden_rows, listed_rows
from pttool.core.gpu.rows import COLUMNS, FIELDS, gpu_item, instance_item
from pttool.core.gpu.selection import select
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.types import FieldError, Gpu, Snapshot
from pttool.core.gpu.unlisted import unlisted_bytes
from pttool.core.gpu.visible import VisibleDevices, visible_here
from pttool.core.report import Column, Report

FOOTER = (
    Column("driver_version", "Driver"),
    Column("cuda_driver_version", "CUDA up to"),
    Column("gpus", "GPUs", "count"),
    Column("healthy", "Healthy", "count"),
)
NOTED = ("memory", "processes", "mig_instances")


def info(names: Sequence[str] = (), *, visible: bool = False) -> Report:
    """Return a row for each GPU and MIG instance; sizes in bytes, power in W, clocks in MHz.

    `names` are indices or UUIDs, none are all; `visible` keeps what CUDA_VISIBLE_DEVICES lets
    through, in its order. A field that can't be read is None, and its row's `errors` say why. The
    report fails where a GPU is not healthy. Raises NoDriverError without a driver or GPU, and
    UsageError for a name that is no GPU.
    """
    snapshot = take_snapshot()
    gpus = select(snapshot.gpus, names)
    seen = visible_here(snapshot.gpus)
    hidden = _hidden(gpus, snapshot)
    items = [item for gpu in gpus for item in _items(gpu, hidden[gpu.index], seen)]
    if visible:
        items = [item for item in items if item["cuda_index"] is not None]
        items.sort(key=lambda item: int(item["cuda_index"]))
    return Report(
        FIELDS,
        COLUMNS,
        items,
        _summary(snapshot, gpus),
        FOOTER,
        (*_notes(gpus), *((seen.note,) if visible and seen.note else ())),
        unhealthy(gpus),
    )


def _hidden(gpus: Sequence[Gpu], snapshot: Snapshot) -> dict[int, list[ProcessRow]]:
    """Return, by the GPU's index, who holds it open where NVML's list can't be all.

    Only there: it takes a look at every descriptor of every process.
    """
    wanting = [gpu for gpu in gpus if gpu.is_healthy and _lacks_processes(gpu)]
    found: dict[int, list[ProcessRow]] = {gpu.index: [] for gpu in gpus}
    if wanting:
        holders = find_holders()
        found |= {gpu.index: hidden_rows(gpu, snapshot, holders) for gpu in wanting}
    return found


def _lacks_processes(gpu: Gpu) -> bool:
    if gpu.is_narrowed:
        return False
    return gpu.processes is None or unlisted_bytes(gpu.memory, gpu.all_processes) > 0


def _items(gpu: Gpu, hidden: list[ProcessRow], seen: VisibleDevices) -> Iterator[dict[str, Any]]:
    own = None if gpu.processes is None else listed_rows(gpu.processes)
    # Holders are no answer to who computes: an unknown list stays unknown without any.
    if not gpu.is_narrowed:
        yield gpu_item(gpu, [*(own or ()), *hidden] if hidden else own, seen)
    for instance in gpu.instances:
        yield instance_item(gpu, instance, seen)


def _summary(snapshot: Snapshot, gpus: Sequence[Gpu]) -> dict[str, Any]:
    return {
        "driver_version": snapshot.driver_version,
        "cuda_driver_version": snapshot.cuda_driver_version,
        "gpus": len(gpus),
        "healthy": sum(gpu.is_healthy for gpu in gpus),
        "errors": snapshot.errors,
    }


def _notes(gpus: Sequence[Gpu]) -> Iterator[str]:
    for gpu in gpus:
        for name in NOTED if gpu.is_healthy else ():
            error = gpu.errors.get(name)
            if error == FieldError.IMPLAUSIBLE:
                yield f"GPU {gpu.index}: a process holds more {name} than the driver says there is"
            elif error is not None:
                yield f"GPU {gpu.index}: {name.replace('_', ' ')} {UNKNOWN}: {error}"
