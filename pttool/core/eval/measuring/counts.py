"""Count labels against predictions, block by block, without ever holding more than is needed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.types import Counts, Ints
from pttool.errors import InputError

DENSE_CELLS = 4_000_000  # 32 MB of int64
MOST_CLASSES = (
    1 << 24
)  # a label read from a file is a claim: three arrays of this length are 400 MB
BLOCK = 1 << 19
# An error's key is label << SHIFT | prediction: it stays the same when the classes grow.
SHIFT = 32


class ConfusionCounter:
    """The confusion matrix of samples that come in blocks.

    While C x C has at most `DENSE_CELLS` cells every cell is counted; above that only the margins,
    the diagonal and the distinct errors are kept. Without `num_classes` C is the largest label or
    prediction seen, plus 1.
    """

    def __init__(self, num_classes: int | None = None) -> None:
        if num_classes is not None and not 0 < num_classes <= MOST_CLASSES:
            raise InputError(f"{num_classes} classes: 1 to {MOST_CLASSES} can be counted")
        self._given = num_classes
        self._num_classes = num_classes or 0
        self._table = _new_table(self._num_classes)

    def add(self, label: NDArray[Any], prediction: NDArray[Any]) -> None:
        """Count the samples of two integer arrays of shape (n,), of any integer type.

        Raises InputError for a class outside 0..C-1 and for arrays of different shapes.
        """
        if label.shape != prediction.shape or label.ndim != 1:
            shapes = f"labels {label.shape}, predictions {prediction.shape}"
            raise InputError(f"{shapes}: two arrays of one length are needed")
        for start in range(0, len(label), BLOCK):
            part = slice(start, start + BLOCK)
            labels, predictions = _int64(label[part]), _int64(prediction[part])
            self._admit("label", labels)
            self._admit("prediction", predictions)
            self._table.add(labels, predictions)

    def counts(self) -> Counts:
        """Return what was counted so far."""
        return self._table.counts(self._num_classes)

    def _admit(self, name: str, classes: Ints) -> None:
        # Seen as unsigned, a negative number is larger than every class.
        largest = int(classes.view(np.uint64).max())
        if largest < self._num_classes:
            return
        limit = MOST_CLASSES if self._given is None else self._given
        if largest >= limit:
            wrong = int(classes[(classes < 0) | (classes >= limit)][0])
            raise InputError(f"{name} {wrong} is outside 0..{limit - 1}")
        self._num_classes = largest + 1
        self._table = self._table.grown(self._num_classes)


def from_arrays(
    label: NDArray[Any], prediction: NDArray[Any], num_classes: int | None = None
) -> Counts:
    """Count two integer arrays of shape (n,). Raises InputError as `ConfusionCounter.add` does."""
    counter = ConfusionCounter(num_classes)
    counter.add(label, prediction)
    return counter.counts()


class _Dense:
    """Every cell of a `width` x `width` matrix."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.cells = np.zeros(width * width, np.int64)

    def add(self, label: Ints, prediction: Ints) -> None:
        key = label * self.width  # int64 already: in uint8 19 * 18 + 3 would be 89
        key += prediction
        _count_into(self.cells, key)

    def grown(self, num_classes: int) -> "_Dense | _Sparse":
        if num_classes <= self.width:
            return self
        if num_classes**2 > DENSE_CELLS:
            return _Sparse.of(self.counts(self.width), num_classes)
        # Doubled, so that classes coming one by one don't copy the matrix each time.
        wider = _Dense(min(2 * num_classes, int(DENSE_CELLS**0.5)))
        square = wider.cells.reshape(wider.width, wider.width)
        square[: self.width, : self.width] = self.cells.reshape(self.width, self.width)
        return wider

    def counts(self, num_classes: int) -> Counts:
        square = self.cells.reshape(self.width, self.width)[:num_classes, :num_classes]
        label, prediction = np.nonzero(square)
        wrong = label != prediction
        label, prediction = label[wrong], prediction[wrong]
        return Counts(
            num_classes=num_classes,
            support=square.sum(1),
            predicted=square.sum(0),
            hits=np.diagonal(square).copy(),
            error_label=label,
            error_prediction=prediction,
            error_count=square[label, prediction],
        )


class _Sparse:
    """The margins, the diagonal, and the distinct errors as sorted keys with their counts."""

    def __init__(self, num_classes: int) -> None:
        self.support, self.predicted, self.hits = (
            np.zeros(num_classes, np.int64) for _ in range(3)
        )
        self.keys = np.zeros(0, np.int64)
        self.numbers = np.zeros(0, np.int64)
        self.pending: list[Ints] = []
        self.waiting = 0

    @classmethod
    def of(cls, counts: Counts, num_classes: int) -> "_Sparse":
        table = cls(num_classes)
        size = counts.num_classes
        table.support[:size] = counts.support
        table.predicted[:size] = counts.predicted
        table.hits[:size] = counts.hits
        table.keys = (counts.error_label << SHIFT) | counts.error_prediction
        table.numbers = counts.error_count
        return table

    def add(self, label: Ints, prediction: Ints) -> None:
        wrong = label != prediction
        labels, predictions = label[wrong], prediction[wrong]
        right = label[~wrong]
        for total, classes in ((self.support, labels), (self.predicted, predictions)):
            _count_into(total, classes)
        for total in (self.hits, self.support, self.predicted):
            _count_into(total, right)
        labels <<= SHIFT
        labels |= predictions
        self.pending.append(labels)
        self.waiting += len(labels)
        # Merged only once as many wait as are kept: memory stays within twice the distinct errors.
        if self.waiting > max(BLOCK, len(self.keys)):
            self.merge()

    def merge(self) -> None:
        """Bring the waiting errors into the sorted ones."""
        if not self.waiting:
            return
        new = np.concatenate(self.pending)
        self.pending, self.waiting = [], 0
        new.sort()
        keys, numbers = _unique(new)
        # Two sorted runs: the stable sort merges them.
        both = np.concatenate([self.keys, keys])
        order = np.argsort(both, kind="stable")
        both = both[order]
        numbers = np.concatenate([self.numbers, numbers])[order]
        starts = _starts(both)
        self.keys, self.numbers = both[starts], np.add.reduceat(numbers, starts)

    def grown(self, num_classes: int) -> "_Sparse":
        if num_classes <= len(self.support):
            return self
        more = max(num_classes, min(2 * len(self.support), MOST_CLASSES)) - len(self.support)
        self.support, self.predicted, self.hits = (
            np.pad(total, (0, more)) for total in (self.support, self.predicted, self.hits)
        )
        return self

    def counts(self, num_classes: int) -> Counts:
        self.merge()
        return Counts(
            num_classes=num_classes,
            support=self.support[:num_classes].copy(),
            predicted=self.predicted[:num_classes].copy(),
            hits=self.hits[:num_classes].copy(),
            error_label=self.keys >> SHIFT,
            error_prediction=self.keys & ((1 << SHIFT) - 1),
            error_count=self.numbers.copy(),
        )


def _new_table(num_classes: int) -> _Dense | _Sparse:
    return _Dense(num_classes) if num_classes**2 <= DENSE_CELLS else _Sparse(num_classes)


def _int64(classes: NDArray[Any]) -> Ints:
    if classes.dtype.kind not in "iub":
        raise InputError(f"classes of type {classes.dtype}: integers are needed")
    if classes.dtype == np.uint64:
        # What is too large for int64 would come out negative; it is too large for a class anyway.
        classes = np.minimum(classes, np.uint64(np.iinfo(np.int64).max))
    return np.ascontiguousarray(classes, np.int64)


def _count_into(total: Ints, keys: Ints) -> None:
    """Add how often each number stands in `keys` to `total`."""
    # bincount writes an array as long as `total`: not worth it for a few keys.
    if len(keys) * 8 < len(total):
        np.add.at(total, keys, 1)
    else:
        total += np.bincount(keys, minlength=len(total))


def _starts(ordered: Ints) -> Ints:
    """Return where each run of equal values begins."""
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return np.flatnonzero(first)


def _unique(ordered: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values and how often each occurs."""
    starts = _starts(ordered)
    return ordered[starts], np.diff(starts, append=len(ordered))
