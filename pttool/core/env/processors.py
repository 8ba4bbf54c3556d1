"""CPUs that a run may use, the threads it would start, and what its workers share, as settings."""

import math
import multiprocessing
import os
import shutil
from collections.abc import Mapping
from typing import Any

from pttool.core.env.setting import Setting
from pttool.core.processors import cpu_quota, usable_cpus

SMALL_SHM_BYTES = 1 << 30  # Docker gives 64 MiB


def processor_settings(told: Mapping[str, Any]) -> list[Setting]:
    """Return CPUs, threads, /dev/shm and the start method; `told` is what torch's library said."""
    quota = cpu_quota()
    cpus = usable_cpus()
    intra = told.get("intra_threads")
    return [
        Setting("cpus.machine", os.cpu_count()),
        Setting("cpus.usable", cpus),
        Setting("cpus.cgroup_quota", quota),
        Setting("threads.intra", intra, _too_many(intra, cpus, quota)),
        Setting("threads.inter", told.get("inter_threads")),
        Setting("threads.omp", told.get("omp_threads")),
        Setting("threads.mkl", told.get("mkl_threads")),
        _shared_memory(),
        Setting("workers.start_method", multiprocessing.get_start_method()),
    ]


def _too_many(threads: int | None, cpus: int | None, quota: float | None) -> str | None:
    """Say that torch starts more threads than there are CPUs for."""
    granted = min((each for each in (cpus, quota) if each is not None), default=None)
    if threads is None or granted is None or threads <= math.ceil(granted):
        return None
    fitting = math.ceil(granted)
    return f"more than the {granted:g} CPUs granted, which slows all: OMP_NUM_THREADS={fitting}"


def _shared_memory() -> Setting:
    name = "workers.shared_memory_bytes"
    try:
        size = shutil.disk_usage("/dev/shm").total
    except OSError:
        return Setting(name, None)
    small = "workers pass batches through /dev/shm: docker run --shm-size=8g, or --ipc=host"
    advice = small if size < SMALL_SHM_BYTES else None
    return Setting(name, size, advice, shown=f"{size / 2**30:.2f} GiB")
