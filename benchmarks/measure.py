"""Run a command several times and say what it cost: CPU and wall seconds, and peak memory."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Cost:
    """The median times of a command (CPU is user and system) and its largest resident set."""

    cpu_s: float
    peak_bytes: int
    wall_s: float = 0.0


def cost(
    command: Sequence[str],
    *,
    rounds: int = 10,
    warm: bool = True,
    before: Callable[[], object] = lambda: None,
    expected: int = 0,
) -> Cost:
    """Run `command` `rounds` times, each after `before`; when `warm` after one run not counted.

    The first run warms the disk cache. Raises CalledProcessError for another exit code than the
    `expected` one.
    """
    runs = []
    for _ in range(rounds + warm):
        before()
        runs.append(_run(command, expected))
    return Cost(
        median(run.cpu_s for run in runs[warm:]),
        max(run.peak_bytes for run in runs[warm:]),
        median(run.wall_s for run in runs[warm:]),
    )


def _run(command: Sequence[str], expected: int) -> Cost:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)  # reaped above, for its own costs
    if process.returncode != expected:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, wall)
