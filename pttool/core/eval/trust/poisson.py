"""Poisson counts of many cells at once: the bootstrap of tables too large to draw exactly.

The Poisson bootstrap gives every sample a Poisson(1) weight (Hanley and MacGibbon, "Creating
non-parametric bootstrap samples using Poisson frequencies", 2006; Chamandy et al., "Estimating
Uncertainty for Massive Data Streams", 2012). Given their sum, the weights are those of drawing with
replacement; without, metrics that are ratios differ by the order of 1 in the number of samples.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.types import Counts, Floats, Ints

# Up to this mean a count is looked up by 16 random bits, above it drawn by numpy: 1 ns or 100.
LARGEST_MEAN = 256
LEVELS = 1 << 16


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells in ascending order of their counts, and the tables that their draws come from."""

    order: Ints
    count: Ints
    runs: list[tuple[slice, NDArray[np.uint16]]]
    looked_up: int

    @classmethod
    def of(cls, count: Ints) -> "Cells":
        """Sort the cells by count; those of one count share a table."""
        order = np.argsort(count, kind="stable")
        ordered = count[order]
        looked_up = int(np.searchsorted(ordered, LARGEST_MEAN, "right"))
        means, starts = np.unique(ordered[:looked_up], return_index=True)
        ends = [*starts.tolist(), looked_up][1:]
        runs = [
            (slice(start, end), _quantiles(mean))
            for mean, start, end in zip(means.tolist(), starts.tolist(), ends, strict=True)
        ]
        return cls(order, ordered, runs, looked_up)

    def draw(self, generator: np.random.Generator) -> NDArray[np.int32]:
        """Return a Poisson count of each cell, in their order."""
        drawn = np.empty(len(self.count), np.int32)
        random = generator.integers(0, LEVELS, self.looked_up, np.uint16)
        for run, table in self.runs:
            drawn[run] = table.take(random[run])
        drawn[self.looked_up :] = generator.poisson(self.count[self.looked_up :])
        return drawn


@dataclass(frozen=True, slots=True)
class _Sums:
    """How cells add up to classes: where each stands when sorted by class, and where runs begin."""

    order: Ints
    starts: Ints
    classes: Ints

    @classmethod
    def of(cls, classes: Ints) -> "_Sums":
        order = np.argsort(classes, kind="stable")
        present, starts = np.unique(classes[order], return_index=True)
        return cls(order, starts, present)

    def add(self, drawn: NDArray[np.int32], width: int) -> Floats:
        sums = np.zeros(width)
        if len(drawn):
            sums[self.classes] = np.add.reduceat(drawn.take(self.order), self.starts)
        return sums


class PoissonTable:
    """A confusion matrix with every cell drawn from the Poisson distribution of its count."""

    def __init__(self, counts: Counts, classes: Ints) -> None:
        position = np.zeros(counts.num_classes, np.int64)
        position[classes] = np.arange(len(classes))
        self._width = len(classes)
        self._hits = Cells.of(counts.hits[classes])
        self._errors = Cells.of(counts.error_count)
        order = self._errors.order
        self._by_label = _Sums.of(position[counts.error_label[order]])
        self._by_prediction = _Sums.of(position[counts.error_prediction[order]])

    def margins(self, generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Return hits, support and predicted of one resampled table."""
        hits = np.empty(self._width)
        hits[self._hits.order] = self._hits.draw(generator)
        errors = self._errors.draw(generator)
        missed, mistaken = (
            sums.add(errors, self._width) for sums in (self._by_label, self._by_prediction)
        )
        missed += hits
        mistaken += hits
        return hits, missed, mistaken


def _quantiles(mean: int) -> NDArray[np.uint16]:
    """Return the Poisson quantiles of `LEVELS` equally likely values."""
    if mean == 0:
        return np.zeros(LEVELS, np.uint16)
    k = np.arange(1, 2 * mean + 64)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(mean / k))]) - mean
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    return np.searchsorted(np.cumsum(np.exp(logarithms)), levels).astype(np.uint16)
