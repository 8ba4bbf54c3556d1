"""CPUs that a run may use, the threads it would start, and what its workers share."""

import math
import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pttool.core.env.setting import Setting
from pttool.core.gpu.sysroot import rooted

SMALL_SHM_BYTES = 1 << 30  # Docker gives 64 MiB


def processor_settings(told: Mapping[str, Any]) -> list[Setting]:
    """Return CPUs, threads, /dev/shm and the start method; `told` is what torch's library said."""
    quota = cpu_quota()
    cpus = _usable_cpus()
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


def cpu_quota() -> float | None:
    """Return how many CPUs' time the cgroup grants, the least of it and its parents; None for all.

    https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files and, for version 1,
    https://docs.kernel.org/scheduler/sched-bwc.html
    """
    try:
        lines = rooted("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            quotas += _quotas_up("/sys/fs/cgroup", path, _quota_v2)
        elif "cpu" in controllers.split(","):
            quotas += _quotas_up(f"/sys/fs/cgroup/{controllers}", path, _quota_v1)
    return min(quotas, default=None)


def _quotas_up(mount: str, path: str, quota: Any) -> Iterator[float]:
    """Yield the quotas of a cgroup and those it is in. In a container its path may not exist."""
    root = rooted(mount)
    folder = root / path.lstrip("/")
    for each in (folder, *folder.parents):
        if each.is_relative_to(root) and (value := quota(each)) is not None:
            yield value


def _quota_v2(folder: Path) -> float | None:
    limit, _, period = _read(folder / "cpu.max").partition(" ")
    return int(limit) / int(period) if limit.isdecimal() and period.isdecimal() else None


def _quota_v1(folder: Path) -> float | None:
    limit, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    return int(limit) / int(period) if limit.isdecimal() and period.isdecimal() else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _usable_cpus() -> int | None:
    """Return how many CPUs the process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


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
