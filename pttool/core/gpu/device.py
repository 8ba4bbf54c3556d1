"""One GPU, field by field: what fails is None, with the error's name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pynvml

from pttool.core.gpu.memory import checked_memory, most_held_bytes, read_memory
from pttool.core.gpu.mig import outside, read_instances
from pttool.core.gpu.nvml import Reader, call
from pttool.core.gpu.processes import read_processes
from pttool.core.gpu.types import Clocks, Ecc, FieldError, Gpu

# What any call may answer once the GPU as a whole no longer works.
FAULTS = (FieldError.GPU_LOST, FieldError.RESET_REQUIRED)
COMPUTE_MODES = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: "default",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive_thread",
    pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive_process",
}


def read_gpu(index: int) -> Gpu:
    """Return the GPU with this index of NVML's; a session must be open."""
    handle, error = call(pynvml.nvmlDeviceGetHandleByIndex, index)
    if error is not None:
        fields = (*SIMPLE, "memory", "processes", "clocks", "ecc")
        return Gpu(index, errors=dict.fromkeys(fields, error), fault=error)
    reader = Reader(handle)
    simple = {
        name: reader.read(name, function, *arguments, convert=convert)
        for name, (function, arguments, convert) in SIMPLE.items()
    }
    memory = read_memory(reader)
    processes = read_processes(reader, most_held_bytes(memory))
    gpu = Gpu(
        index,
        **simple,
        minor=call(pynvml.nvmlDeviceGetMinorNumber, handle)[0],
        architecture=call(pynvml.nvmlDeviceGetArchitecture, handle)[0],
        memory=checked_memory(memory, simple["name"], processes, reader),
        processes=processes,
        clocks=_clocks(reader),
        ecc=_ecc(reader),
    )
    instances = read_instances(reader, processes) if gpu.mig else ()
    return replace(
        gpu,
        instances=instances,
        processes=outside(instances, processes),
        errors=reader.errors,
        fault=next((name for name in reader.errors.values() if name in FAULTS), None),
    )


def _clocks(reader: Reader) -> Clocks | None:
    graphics, sm, memory = (
        reader.read("clocks", pynvml.nvmlDeviceGetClockInfo, domain)
        for domain in (pynvml.NVML_CLOCK_GRAPHICS, pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM)
    )
    known = any(clock is not None for clock in (graphics, sm, memory))
    return Clocks(graphics, sm, memory) if known else None


def _ecc(reader: Reader) -> Ecc | None:
    enabled = reader.read("ecc", pynvml.nvmlDeviceGetEccMode, convert=_is_on)
    if enabled is None:
        return None
    errors = reader.read(
        "ecc.uncorrected_errors",
        pynvml.nvmlDeviceGetTotalEccErrors,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    return Ecc(enabled, errors)


def _is_on(modes: list[int]) -> bool:
    """Of the current mode and the one after a reset, the current."""
    return modes[0] == 1


def _bus_id(told: Any) -> str:
    raw = told.busId
    return raw.decode("ascii", "backslashreplace") if isinstance(raw, bytes) else str(raw)


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


Call = tuple[Callable[..., Any], tuple[int, ...], Callable[[Any], Any]]
# The fields that one call answers: it, its arguments after the handle, and what is made of it.
SIMPLE: dict[str, Call] = {
    "uuid": (pynvml.nvmlDeviceGetUUID, (), str),
    "name": (pynvml.nvmlDeviceGetName, (), str),
    "pci_bus_id": (pynvml.nvmlDeviceGetPciInfo, (), _bus_id),
    "utilization_percent": (
        pynvml.nvmlDeviceGetUtilizationRates, (), lambda rates: int(rates.gpu)
    ),
    "temperature_c": (pynvml.nvmlDeviceGetTemperature, (pynvml.NVML_TEMPERATURE_GPU,), int),
    "power_w": (pynvml.nvmlDeviceGetPowerUsage, (), _watts),
    "power_limit_w": (pynvml.nvmlDeviceGetEnforcedPowerLimit, (), _watts),
    "persistence_mode": (pynvml.nvmlDeviceGetPersistenceMode, (), bool),
    "compute_mode": (
        pynvml.nvmlDeviceGetComputeMode, (), lambda mode: COMPUTE_MODES.get(mode, str(mode))
    ),
    "compute_capability": (
        pynvml.nvmlDeviceGetCudaComputeCapability, (), lambda pair: f"{pair[0]}.{pair[1]}"
    ),
    "mig": (pynvml.nvmlDeviceGetMigMode, (), _is_on),
}  # fmt: skip
