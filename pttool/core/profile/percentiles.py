"""Percentiles of measured times, by nearest rank: each is a time that was really measured."""

from collections.abc import Sequence
from math import ceil


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """Return the smallest of the values, sorted in rising order, that `fraction` of them reach.

    Raises ValueError when there are none.
    """
    if not ordered:
        raise ValueError("no values")
    return ordered[max(ceil(fraction * len(ordered)), 1) - 1]
