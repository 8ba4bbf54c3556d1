"""What torch's allocators gave and took back while a window was open."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter


class Allocations:
    """Bytes over time: each is (nanoseconds, bytes), negative where memory was given back."""

    def __init__(self, changes: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(changes, key=itemgetter(0))
        self._times = [time for time, _ in ordered]
        self._held = [0, *accumulate(size for _, size in ordered)]

    def __bool__(self) -> bool:
        return bool(self._times)

    @property
    def peak(self) -> int:
        """The most that was held at once, beyond what was held when the window was opened."""
        return max(self._held)

    def between(self, start: int, end: int) -> int:
        """Return the bytes that were held more at `end` than before `start`, both included."""
        return self._held[bisect_right(self._times, end)] - self._held[self._before(start)]

    def outside(self, starts: Iterable[int], ends: Iterable[int]) -> tuple[int, int]:
        """Return how many changes lie in none of the intervals, and the sum of their bytes."""
        begun, over = sorted(starts), sorted(ends)
        sizes = [
            self._held[index + 1] - self._held[index]
            for index, time in enumerate(self._times)
            if bisect_right(begun, time) == bisect_left(over, time)
        ]
        return len(sizes), sum(sizes)

    def _before(self, time: int) -> int:
        return bisect_left(self._times, time)
