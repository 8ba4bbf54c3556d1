"""Smooth a noisy curve as TensorBoard does."""

from collections.abc import Iterable
from math import isfinite, nan


def smoothed(values: Iterable[float], weight: float) -> list[float]:
    """Return the exponential moving average, corrected for its start from 0.

    `weight` is TensorBoard's slider: 0 leaves all as it is, below 1 is smoother. A value that is
    not finite stays in its place and isn't averaged.
    """
    average, power = 0.0, 1.0
    found = []
    for value in values:
        if not isfinite(value):
            found.append(nan)
            continue
        average = weight * average + (1 - weight) * value
        power *= weight
        found.append(average / (1 - power))
    return found
