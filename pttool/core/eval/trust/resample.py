"""Draw confusion matrices as a bootstrap of the samples would: only their margins are kept."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pttool.core.eval.trust.poisson import PoissonTable
from pttool.core.eval.types import Counts, Floats, Ints

ELEMENTS = 1_000_000  # resamples x classes held at a time
# Rough costs of the exact ways, in ns: of a cell drawn, of an error, and of the hits of a class.
CELL_NS, ERROR_NS, HITS_NS = 80, 8, 150
PATIENCE_NS = 1_000_000_000
# Of Poisson counts: of an error cell, and of a class with its metrics.
POISSON_NS, CLASS_NS = 6, 15
LARGE_PATIENCE_NS = 5_000_000_000
FEWEST = 200
MOST_COVARIANCES = 4_000_000  # cells of a matrix of classes x classes

Margins = tuple[Floats, Floats, Floats]


def resample(
    counts: Counts, classes: Ints, resamples: int, generator: np.random.Generator
) -> Iterator[Margins]:
    """Yield hits, support and predicted of resampled tables: (some resamples, len(classes)) each.

    `classes` are those with a sample or a prediction. The cells are drawn from a
    multinomial distribution with their shares, which is what drawing n samples with replacement
    gives. Only the margins are wanted, so the errors are drawn in the cheaper of two exact ways:
    cell by cell, or error by error.

    Where that would take more than about 1 s there are two approximations. With up to 2000 classes
    the resampled errors per label are exact and the errors per prediction, given those, are drawn
    from the normal distribution with the multinomial's mean and covariance, rounded and not below
    0. With more, every cell is a Poisson count (see `poisson`).
    """
    if _is_huge(counts, len(classes), resamples):
        table = PoissonTable(counts, classes)
        for _ in range(resamples):
            one = table.margins(generator)
            yield one[0][None], one[1][None], one[2][None]
        return
    errors = _Errors.of(counts, classes)
    hits = counts.hits[classes]
    shares = np.append(hits, errors.total) / counts.n
    chunk = max(1, ELEMENTS // len(classes))
    draw = _way(errors, len(classes), resamples)
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        drawn = generator.multinomial(counts.n, shares, size)
        right, wrong = drawn[:, :-1].astype(np.float64), drawn[:, -1]
        missed, mistaken = draw.margins(wrong, generator)
        yield right, right + missed, right + mistaken


@dataclass(frozen=True, slots=True)
class _Errors:
    """The cells off the diagonal; label and prediction as positions among the classes."""

    label: Ints
    prediction: Ints
    count: Ints
    total: int

    @classmethod
    def of(cls, counts: Counts, classes: Ints) -> "_Errors":
        position = np.zeros(counts.num_classes, np.int64)
        position[classes] = np.arange(len(classes))
        label, prediction = position[counts.error_label], position[counts.error_prediction]
        return cls(label, prediction, counts.error_count, int(counts.error_count.sum()))


@dataclass(frozen=True, slots=True)
class _ByCell:
    """One draw per cell."""

    errors: _Errors
    width: int

    def margins(self, wrong: Ints, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Return errors per label and per prediction, given the number of errors of each."""
        missed, mistaken = np.zeros((2, len(wrong), self.width))
        if not self.errors.total:
            return missed, mistaken
        shares = self.errors.count / self.errors.total
        for row, number in enumerate(wrong.tolist()):
            cells = generator.multinomial(number, shares)
            missed[row] = np.bincount(self.errors.label, cells, self.width)
            mistaken[row] = np.bincount(self.errors.prediction, cells, self.width)
        return missed, mistaken


@dataclass(frozen=True, slots=True)
class _ByError:
    """One draw per error: with many cells of a few errors each."""

    label: Ints
    prediction: Ints
    width: int

    @classmethod
    def of(cls, errors: _Errors, width: int) -> "_ByError":
        return cls(
            np.repeat(errors.label, errors.count), np.repeat(errors.prediction, errors.count), width
        )

    def margins(self, wrong: Ints, generator: np.random.Generator) -> tuple[Floats, Floats]:
        missed, mistaken = np.zeros((2, len(wrong), self.width))
        for row, number in enumerate(wrong.tolist()):
            drawn = generator.integers(0, len(self.label), number, np.uint32)
            missed[row] = np.bincount(self.label.take(drawn), minlength=self.width)
            mistaken[row] = np.bincount(self.prediction.take(drawn), minlength=self.width)
        return missed, mistaken


@dataclass(frozen=True, slots=True)
class _ByNormal:
    """Errors per label exactly; per prediction by the normal distribution given those."""

    share: Floats
    spread: Floats
    root: Floats

    @classmethod
    def of(cls, errors: _Errors, width: int) -> "_ByNormal":
        table = np.zeros((width, width))
        table[errors.label, errors.prediction] = errors.count
        missed, mistaken = table.sum(1), table.sum(0)
        spread = table / np.maximum(missed, 1.0)[:, None]
        # Given the errors per label, rows are independent multinomials: the sum over rows of
        # diag(r p) - r p p', at the expected r.
        covariance = np.diag(mistaken) - spread.T @ (missed[:, None] * spread)
        # It has no inverse (the total is given): a little on the diagonal lets it be factored.
        covariance[np.diag_indices(width)] += 1e-9 * max(1.0, float(mistaken.max()))
        return cls(missed / errors.total, spread, np.linalg.cholesky(covariance))

    def margins(self, wrong: Ints, generator: np.random.Generator) -> tuple[Floats, Floats]:
        missed = generator.multinomial(wrong, self.share).astype(np.float64)
        noise = generator.standard_normal(missed.shape) @ self.root.T
        return missed, np.maximum(np.rint(missed @ self.spread + noise), 0.0)


def _way(errors: _Errors, width: int, resamples: int) -> _ByCell | _ByError | _ByNormal:
    by_cell, by_error = CELL_NS * len(errors.count), ERROR_NS * errors.total
    if _is_long(min(by_cell, by_error), width, resamples) and width * width <= MOST_COVARIANCES:
        return _ByNormal.of(errors, width)
    return _ByError.of(errors, width) if by_error < by_cell else _ByCell(errors, width)


def resamples_of(counts: Counts, classes: int, wanted: int) -> int:
    """Return how many resamples to draw: fewer than wanted where they would take over 5 s."""
    if not _is_huge(counts, classes, wanted):
        return wanted
    each = POISSON_NS * len(counts.error_count) + CLASS_NS * classes
    return min(wanted, max(FEWEST, LARGE_PATIENCE_NS // each))


def _is_huge(counts: Counts, classes: int, resamples: int) -> bool:
    """Return whether a table is drawn as Poisson counts."""
    cells, total = len(counts.error_count), int(counts.error_count.sum())
    exact = min(CELL_NS * cells, ERROR_NS * total)
    return classes * classes > MOST_COVARIANCES and _is_long(exact, classes, resamples)


def _is_long(errors_ns: int, classes: int, resamples: int) -> bool:
    return (errors_ns + HITS_NS * classes) * resamples > PATIENCE_NS
