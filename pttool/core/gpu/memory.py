"""How much memory a GPU has, and who says so."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pynvml

from pttool.core.gpu.nvml import Reader
from pttool.core.gpu.types import FieldError, Memory, MemorySource, Process
from pttool.core.sysroot import rooted

# GPUs without memory of their own: NVML answers "not supported" for GB10, Jetson and Grace's
# integrated ones, or gives the small part that the firmware set aside.
INTEGRATED = re.compile(r"\b(GB10|N1X?|Grace|Jetson|Orin|Tegra|Thor|Xavier)\b", re.IGNORECASE)


def read_memory(reader: Reader) -> Memory | None:
    """Return what NVML says, by its second call or else its first."""
    for source, arguments in (
        (MemorySource.NVML, (pynvml.nvmlMemory_v2,)),
        (MemorySource.NVML_V1, ()),
    ):
        told = reader.read("memory", pynvml.nvmlDeviceGetMemoryInfo, *arguments, convert=_figures)
        if told is not None:
            reader.errors.pop("memory", None)
            total, used, free = told
            return Memory(total, used, free, source)
    return None


def most_held_bytes(memory: Memory | None) -> int | None:
    """Return what no process can hold more than, in bytes; None where that is unknown."""
    if memory is None or memory.total_bytes == 0:
        return None
    return max(memory.total_bytes, system_memory_bytes().get("MemTotal", 0))


def checked_memory(
    memory: Memory | None, name: str | None, processes: Sequence[Process] | None, reader: Reader
) -> Memory | None:
    """Return the memory as it is to be reported, with what else is known of the GPU.

    Where NVML has no figures for an integrated GPU, they are the system's: memory that can still
    be had is free, and what the processes hold is used.
    """
    is_integrated = INTEGRATED.search(name or "") is not None
    held = [each.memory_bytes for each in processes or () if each.memory_bytes is not None]
    if memory is None:
        missing = reader.errors.get("memory") == FieldError.NOT_SUPPORTED
        known = processes is not None and len(held) == len(processes)
        system = _of_system(sum(held) if known else None) if missing and is_integrated else None
        if system is not None:
            del reader.errors["memory"]
        return system
    total = memory.total_bytes
    plausible = max(memory.used_bytes or 0, *held, 0) <= total and total > 0
    if not plausible:
        reader.errors["memory"] = FieldError.IMPLAUSIBLE
    free = memory.free_bytes
    possible = free is not None and free <= total and (plausible or free == 0)
    return replace(
        memory,
        free_bytes=free if possible else None,
        unified=is_integrated,
        plausible=plausible,
    )


def system_memory_bytes() -> dict[str, int]:
    """Return the fields of /proc/meminfo that are sizes, in bytes; none where it can't be read."""
    try:
        text = rooted("/proc/meminfo").read_text()
    except OSError:
        return {}
    fields = re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(kibibytes) * 1024 for name, kibibytes in fields}


def _figures(told: Any) -> tuple[int, int, int]:
    return told.total, told.used, told.free


def _of_system(used: int | None) -> Memory | None:
    sizes = system_memory_bytes()
    if "MemTotal" not in sizes:
        return None
    free = sizes.get("MemAvailable")
    return Memory(sizes["MemTotal"], used, free, MemorySource.SYSTEM, unified=True)
