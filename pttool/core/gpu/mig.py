"""The MIG instances of a GPU, each with its own memory and processes."""

from collections.abc import Iterator, Sequence

import pynvml

from pttool.core.gpu.memory import checked_memory, most_held_bytes, read_memory
from pttool.core.gpu.nvml import Reader, call
from pttool.core.gpu.processes import read_processes
from pttool.core.gpu.types import FieldError, MigInstance, Process

Processes = tuple[Process, ...] | None


def read_instances(parent: Reader, listed: Processes) -> tuple[MigInstance, ...]:
    """Return the MIG instances of a GPU; `listed` are the processes that the GPU itself lists."""
    most = parent.read("mig_instances", pynvml.nvmlDeviceGetMaxMigDeviceCount)
    return tuple(_instances(parent, most or 0, listed))


def outside(instances: Sequence[MigInstance], listed: Processes) -> Processes:
    """Return the processes of a GPU without those that one of its instances has."""
    inside = {process.pid for each in instances for process in each.processes or ()}
    return None if listed is None else tuple(each for each in listed if each.pid not in inside)


def _instances(parent: Reader, most: int, listed: Processes) -> Iterator[MigInstance]:
    for index in range(most):
        handle, error = call(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent.handle, index)
        if error == FieldError.NOT_FOUND:  # a place that is empty
            continue
        if error is not None:
            parent.errors["mig_instances"] = error
            return
        yield _instance(Reader(handle), index, listed)


def _instance(reader: Reader, index: int, listed: Processes) -> MigInstance:
    memory = read_memory(reader)
    gpu_instance = reader.read("gpu_instance", pynvml.nvmlDeviceGetGpuInstanceId)
    compute_instance = reader.read("compute_instance", pynvml.nvmlDeviceGetComputeInstanceId)
    processes = read_processes(reader, most_held_bytes(memory))
    if processes is None and listed is not None and gpu_instance is not None:
        reader.errors.pop("processes", None)
        place = (gpu_instance, compute_instance)
        processes = tuple(p for p in listed if (p.gpu_instance, p.compute_instance) == place)
    return MigInstance(
        index,
        uuid=reader.read("uuid", pynvml.nvmlDeviceGetUUID, convert=str),
        name=reader.read("name", pynvml.nvmlDeviceGetName, convert=str),
        gpu_instance=gpu_instance,
        compute_instance=compute_instance,
        memory=checked_memory(memory, None, processes, reader),
        processes=processes,
        errors=reader.errors,
    )
