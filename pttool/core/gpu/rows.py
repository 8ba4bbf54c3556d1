"""A GPU as a row, and each of its MIG instances as one: raw fields, and texts for a table."""

from typing import Any

from pttool.core.gpu.listing import UNKNOWN, ProcessRow, brief, listed_rows
from pttool.core.gpu.types import FieldError, Gpu, Memory, MemorySource, MigInstance
from pttool.core.gpu.visible import VisibleDevices
from pttool.core.report import Column

FIELDS = (
    "index", "uuid", "name", "pci_bus_id", "memory", "utilization_percent", "temperature_c",
    "power_w", "power_limit_w", "mig", "processes", "errors", "fault", "cuda_index",
    "mig_instance", "clocks", "ecc", "persistence_mode", "compute_mode", "compute_capability",
)  # fmt: skip
COLUMNS = (
    Column("shown_index", "GPU"),
    Column("shown_name", "Name"),
    Column("shown_memory", "Memory"),
    Column("shown_utilization", "Busy"),
    Column("shown_temperature", "Temp", optional=True),
    Column("shown_power", "Power", optional=True),
    Column("shown_processes", "Processes"),
    Column("uuid", "UUID", optional=True),
)
# What NVML tells of a whole GPU only; of a MIG instance it answers "not supported".
OF_GPU_ONLY = (
    "utilization_percent", "temperature_c", "power_w", "power_limit_w", "mig", "clocks", "ecc",
    "persistence_mode", "compute_mode", "compute_capability",
)  # fmt: skip


def gpu_item(gpu: Gpu, rows: list[ProcessRow] | None, seen: VisibleDevices) -> dict[str, Any]:
    """Return the row of a GPU with these processes; None is a list that can't be read."""
    values = {name: getattr(gpu, name) for name in FIELDS if hasattr(gpu, name)}
    return {
        **values,
        "processes": rows,
        "cuda_index": seen.place_of(gpu.uuid),
        "mig_instance": None,
        "shown_index": str(gpu.index),
        "shown_name": gpu.name if gpu.fault is None else f"{gpu.name or ''} {gpu.fault}".strip(),
        "shown_memory": shown_memory(gpu.memory),
        "shown_utilization": _shown(gpu.utilization_percent, " %"),
        "shown_temperature": _shown(gpu.temperature_c, " C"),
        "shown_power": _shown_power(gpu),
        "shown_processes": brief(rows),
    }


def instance_item(gpu: Gpu, instance: MigInstance, seen: VisibleDevices) -> dict[str, Any]:
    """Return the row of a MIG instance; what it shares, as the temperature, is in its GPU's."""
    rows = None if instance.processes is None else listed_rows(instance.processes)
    place = f"GI{_shown(instance.gpu_instance)}/CI{_shown(instance.compute_instance)}"
    profile = (instance.name or "").partition("MIG ")[2]
    return {
        **dict.fromkeys(FIELDS),
        "index": gpu.index,
        "uuid": instance.uuid,
        "name": instance.name,
        "pci_bus_id": gpu.pci_bus_id,
        "memory": instance.memory,
        "processes": rows,
        "errors": {**dict.fromkeys(OF_GPU_ONLY, FieldError.NOT_SUPPORTED), **instance.errors},
        "cuda_index": seen.place_of(instance.uuid),
        "mig_instance": {
            "index": instance.index,
            "gpu_instance": instance.gpu_instance,
            "compute_instance": instance.compute_instance,
            "gpu_uuid": gpu.uuid,
        },
        "shown_index": f"{gpu.index}.{instance.index}",
        "shown_name": f"MIG {profile} {place}",
        "shown_memory": shown_memory(instance.memory),
        "shown_utilization": UNKNOWN,
        "shown_temperature": "",
        "shown_power": "",
        "shown_processes": brief(rows),
    }


def shown_memory(memory: Memory | None) -> str:
    """Return used and total memory, and what to keep in mind of the figures."""
    if memory is None:
        return UNKNOWN
    used = UNKNOWN if memory.used_bytes is None else str(memory.used_bytes >> 20)
    marks = [
        mark
        for mark, holds in (
            ("shared", memory.unified),
            ("of the system", memory.source is MemorySource.SYSTEM),
            ("implausible", not memory.plausible),
        )
        if holds
    ]
    told = f"{used} / {memory.total_bytes >> 20} MiB"
    return f"{told} ({', '.join(marks)})" if marks else told


def _shown_power(gpu: Gpu) -> str:
    if gpu.power_w is None:
        return UNKNOWN
    return f"{gpu.power_w:.0f} / {_shown(gpu.power_limit_w)} W"


def _shown(value: float | None, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value:.0f}{unit}"
