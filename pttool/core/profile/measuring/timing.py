"""How long calls take, one by one: the clock on a CPU, events on a GPU."""

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pttool.core.profile.percentiles import percentile

FEWEST_RUNS = 3
WARM_UP_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each call, in rising order."""

    ordered: tuple[float, ...]

    @property
    def runs(self) -> int:
        """How many calls were timed."""
        return len(self.ordered)

    @property
    def total_s(self) -> float:
        """What they took together."""
        return sum(self.ordered)

    def at(self, fraction: float) -> float:
        """Return a percentile: 0.5, 0.9."""
        return percentile(self.ordered, fraction)


def time_calls(call: Callable[[], object], *, device: str, min_time_s: float) -> Times:
    """Call again and again for `min_time_s` seconds, but 3 times at least, and time each call.

    A tenth of that time, and 3 calls at least, goes before, to warm up. On "cuda" a call's time is
    that between two events around it, and the next one waits for the second: as a user who needs
    the result does.
    """
    timed = _by_events if device == "cuda" else _by_clock
    _repeated(call, timed, WARM_UP_SHARE * min_time_s)
    return Times(tuple(sorted(_repeated(call, timed, min_time_s))))


def _repeated(
    call: Callable[[], object], timed: Callable[[Callable[[], object]], float], min_time_s: float
) -> "array[float]":
    seconds = array("d")
    spent = 0.0
    while spent < min_time_s or len(seconds) < FEWEST_RUNS:
        seconds.append(timed(call))
        spent += seconds[-1]
    return seconds


def _by_clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _by_events(call: Callable[[], object]) -> float:
    make: Callable[..., Any] = torch.cuda.Event
    start, end = make(enable_timing=True), make(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    elapsed_ms: float = start.elapsed_time(end)
    return elapsed_ms / 1000
