"""How many CPUs a process may use."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pttool.core.sysroot import rooted


def granted_cpus() -> int:
    """Return how many CPUs a process can keep busy: those it may run on, at most its quota."""
    usable, quota = usable_cpus() or 1, cpu_quota()
    return max(1, usable if quota is None else min(usable, round(quota)))


def usable_cpus() -> int | None:
    """Return how many CPUs the process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


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
