"""The processes that NVML lists, where its records can be true."""

from typing import Any

import pynvml

from pttool.core.gpu.nvml import Reader, call
from pttool.core.gpu.types import FieldError, Process

# The kernel's PID_MAX_LIMIT on 64 bits: NVML's PIDs are the host's, whatever pid_max is here.
MOST_PID = 1 << 22
NO_INSTANCE = 0xFFFFFFFF
COMPUTE = "C"

# Drivers 535.43 to 535.86 wrote records of 32 bytes where _v3 has 24: all but the first are then
# garbage. The _v2 calls were spared.
CALLS = {
    COMPUTE: (
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
    ),
    "G": (
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
    ),
    "M": (
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
    ),
}


def read_processes(reader: Reader, most_bytes: int | None) -> tuple[Process, ...] | None:
    """Return the processes on a device by PID, or None where those that compute are unknown.

    `most_bytes` is more memory than one of them can hold.
    """
    found: dict[int, Process] = {}
    for type, calls in CALLS.items():
        records, error = _records(reader, calls, most_bytes)
        if records is None and type == COMPUTE:
            reader.errors["processes"] = error or FieldError.NOT_SUPPORTED
            return None
        for record in records or ():
            found[record.pid] = _joined(found.get(record.pid), type, record)
    return tuple(found[pid] for pid in sorted(found))


def _records(
    reader: Reader, calls: tuple[Any, ...], most_bytes: int | None
) -> tuple[list[Any] | None, str | None]:
    error: str | None = None
    for function in calls:
        records, failed = call(function, reader.handle)
        if records is not None and all(_can_be_true(each, most_bytes) for each in records):
            return records, None
        error = failed or FieldError.IMPLAUSIBLE_RECORDS
    return None, error


def _can_be_true(record: Any, most_bytes: int | None) -> bool:
    held = record.usedGpuMemory
    return 0 < record.pid <= MOST_PID and (held is None or most_bytes is None or held <= most_bytes)


def _joined(known: Process | None, type: str, record: Any) -> Process:
    """A process that both computes and draws is in two lists, each with all of its memory."""
    held = record.usedGpuMemory
    if known is None:
        return Process(
            record.pid,
            type,
            held,
            _instance(record.gpuInstanceId),
            _instance(record.computeInstanceId),
        )
    sizes = [size for size in (known.memory_bytes, held) if size is not None]
    return Process(
        known.pid,
        f"{known.type}+{type}",
        max(sizes, default=None),
        known.gpu_instance,
        known.compute_instance,
    )


def _instance(number: int) -> int | None:
    return None if number == NO_INSTANCE else number
