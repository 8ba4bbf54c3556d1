"""Run a command several times and say what it cost: CPU seconds and peak memory."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Cost:
    """The median CPU time of a command (user and system) and its largest resident set."""

    cpu_s: float
    peak_bytes: int


def cost(command: Sequence[str], *, rounds: int = 10) -> Cost:
    """Run `command` `rounds` times, after one run that warms the disk cache."""
    _run(command)
    runs = [_run(command) for _ in range(rounds)]
    return Cost(median(run.cpu_s for run in runs), max(run.peak_bytes for run in runs))


def _run(command: Sequence[str]) -> Cost:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # reaped above, where its own costs could be read
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
