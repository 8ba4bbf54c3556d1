"""Round numbers for the axes of a plot, and how few points show all that a line shows."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, log10

Points = Sequence[tuple[float, float]]
ROUND_STEPS = (1, 2, 2.5, 5, 10)
NARROWEST = 1e-300  # of a range: a part of less is rounded to 0


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` (2 or more) round numbers between low and high, equally far apart."""
    if not high - low > NARROWEST:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * times for times in ROUND_STEPS if power * times >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` powers of 10 between low and high (above 0), or else round numbers."""
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    decades = last - first + 1
    if decades < 2:
        return [tick for tick in linear_ticks(low, high, most) if tick > 0]
    stride = ceil(decades / most)
    return [10.0**power for power in range(first, last + 1, stride)]


def label(tick: float, ticks: Sequence[float]) -> str:
    """Return a tick as text, with no more digits than tell the ticks apart."""
    if tick == 0:
        return "0"
    largest = max(abs(each) for each in ticks)
    # What rounding left of a zero.
    if abs(tick) < 1e-9 * largest:
        return "0"
    for digits in range(1, 17):
        if abs(float(f"{tick:.{digits}g}") - tick) <= 1e-9 * abs(tick):
            break
    text = f"{tick:.{digits}g}"
    if "e" in text and 1e-4 <= abs(tick) < 1e6:
        return f"{tick:.10f}".rstrip("0").rstrip(".")
    return text.replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def thinned(points: Points, buckets: int) -> Points:
    """Return the first, lowest, highest and last point in each of `buckets` parts of the x axis.

    A line through them looks as one through all where a bucket is no wider than a dot. Points whose
    x ever falls are left as they are.
    """
    if len(points) <= 4 * buckets or any(a[0] > b[0] for a, b in pairwise(points)):
        return points
    low, high = points[0][0], points[-1][0]
    kept: list[tuple[float, float]] = []
    start = 0
    for bucket in range(1, buckets + 1):
        end = start
        edge = low + (high - low) * bucket / buckets
        while end < len(points) and (points[end][0] <= edge or bucket == buckets):
            end += 1
        if end > start:
            kept += _extremes(points, start, end)
        start = end
    return kept


def _extremes(points: Points, start: int, end: int) -> list[tuple[float, float]]:
    places = range(start, end)
    lowest = min(places, key=lambda place: points[place][1])
    highest = max(places, key=lambda place: points[place][1])
    return [points[place] for place in sorted({start, lowest, highest, end - 1})]
