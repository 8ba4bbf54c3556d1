"""The metrics of a confusion matrix: pure functions of `Counts`.

Definitions as in scikit-learn, with 0/0 = 0.0; what was 0/0 is named.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.types import Counts, Floats, Ints

Flags = NDArray[np.bool_]
Macro = Literal["seen", "all"]
By = Literal["row", "column"]
MOST = 1 << 63  # beyond int64


@dataclass(frozen=True, slots=True)
class PerClass:
    """Precision, recall, F1 and intersection over union of each class: arrays of length C.

    The flags say where a value was 0/0 and so is 0.0.
    """

    precision: Floats
    recall: Floats
    f1: Floats
    iou: Floats
    no_precision: Flags
    no_recall: Flags
    no_f1: Flags

    def undefined(self, number: int) -> list[str]:
        """Return which of precision, recall and f1 of a class were 0/0. (iou is when f1 is.)"""
        flags = {"precision": self.no_precision, "recall": self.no_recall, "f1": self.no_f1}
        return [name for name, flag in flags.items() if flag[number]]


@dataclass(frozen=True, slots=True)
class Average:
    """One average of precision, recall and F1 over classes."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Totals:
    """The metrics of all classes together.

    `macro` averages `macro_classes` classes; `classes_seen` occur as label or prediction. Names in
    `undefined` were 0/0, or an average of nothing, and are 0.0.
    """

    n: int
    num_classes: int
    classes_seen: int
    accuracy: float
    balanced_accuracy: float
    kappa: float
    mcc: float
    micro: Average
    macro: Average
    macro_classes: int
    weighted: Average
    mean_iou: float
    undefined: tuple[str, ...]


def per_class(counts: Counts) -> PerClass:
    """Return precision, recall, F1 (scikit-learn) and IoU (Jaccard index) of each class."""
    both = counts.support + counts.predicted
    precision, no_precision = _ratio(counts.hits, counts.predicted)
    recall, no_recall = _ratio(counts.hits, counts.support)
    f1, no_f1 = _ratio(2 * counts.hits, both)
    iou, _ = _ratio(counts.hits, both - counts.hits)
    return PerClass(precision, recall, f1, iou, no_precision, no_recall, no_f1)


def totals(
    counts: Counts,
    *,
    macro: Macro = "seen",
    ignored: Collection[int] = (),
    classes: PerClass | None = None,
) -> Totals:
    """Return accuracy, balanced accuracy, kappa, MCC and the micro, macro and weighted averages.

    The macro average (and the mean IoU) is over the classes that occur as label or prediction, or
    over all C. Classes in `ignored`, whose samples were dropped by label, are in neither. `classes`
    spares computing `per_class(counts)` again.

    Balanced accuracy is the mean recall of the classes with support, as in scikit-learn, and MCC
    Gorodkin's R_K, 0.0 where undefined.
    """
    classes = classes or per_class(counts)
    seen = (counts.support + counts.predicted) > 0
    averaged = seen.copy() if macro == "seen" else np.ones(counts.num_classes, np.bool_)
    averaged[[c for c in ignored if 0 <= c < counts.num_classes]] = False
    agreement = _Agreement.of(counts)
    values = {
        "accuracy": _quotient(agreement.hits, agreement.n),
        "balanced_accuracy": _mean(classes.recall[counts.support > 0]),
        "kappa": agreement.kappa(),
        "mcc": agreement.mcc(),
        "mean_iou": _mean(classes.iou[averaged]),
    }
    accuracy = values["accuracy"] or 0.0
    return Totals(
        n=agreement.n,
        num_classes=counts.num_classes,
        classes_seen=int(seen.sum()),
        micro=Average(accuracy, accuracy, accuracy),
        macro=_average(classes, averaged.astype(np.float64)),
        macro_classes=int(averaged.sum()),
        weighted=_average(classes, counts.support.astype(np.float64)),
        undefined=tuple(name for name, value in values.items() if value is None),
        **{name: value or 0.0 for name, value in values.items()},
    )


@dataclass(frozen=True, slots=True)
class Confused:
    """Of each class, the classes it was confused with: count descending, then class ascending."""

    other: Ints
    count: Ints
    starts: Ints

    def of(self, number: int, most: int = 5) -> list[tuple[int, int]]:
        """Return at most `most` pairs (other class, count > 0); never the class itself."""
        begin = int(self.starts[number])
        part = slice(begin, min(begin + most, int(self.starts[number + 1])))
        return list(zip(self.other[part].tolist(), self.count[part].tolist(), strict=True))

    def each(self, most: int = 5) -> Iterator[list[tuple[int, int]]]:
        """Yield what `of` returns for every class in turn, several times faster."""
        starts = self.starts.tolist()
        others, numbers = self.other.tolist(), self.count.tolist()
        for begin, end in pairwise(starts):
            part = slice(begin, min(begin + most, end))
            yield list(zip(others[part], numbers[part], strict=True)) if begin < end else []


def confused(counts: Counts, by: By = "row") -> Confused:
    """Sort the errors of every class at once.

    By row: what samples with the label were predicted as. By column: which labels the samples had
    that were predicted as the class.
    """
    own, other, count = counts.error_label, counts.error_prediction, counts.error_count
    if by == "column":
        own, other = other, own
    starts = np.zeros(counts.num_classes + 1, np.int64)
    np.cumsum(np.bincount(own, minlength=counts.num_classes), out=starts[1:])
    size, largest = max(counts.num_classes, 1), int(count.max(initial=0))
    if size * size * (largest + 1) >= MOST:
        order = np.lexsort((other, -count, own))
        return Confused(other[order], count[order], starts)
    # Class, count and other class fit into one number: sorting values is faster than sorting rows.
    key = (own * (largest + 1) + (largest - count)) * size + other
    key.sort()
    rest, other = np.divmod(key, size)
    return Confused(other, largest - rest % (largest + 1), starts)


def most_confused(counts: Counts, most: int) -> list[tuple[int, int, int]]:
    """Return (label, prediction, count) of the largest errors: count descending, then label."""
    order = np.argsort(-counts.error_count, kind="stable")[:most]
    columns = (counts.error_label, counts.error_prediction, counts.error_count)
    return list(zip(*(column[order].tolist() for column in columns), strict=True))


@dataclass(frozen=True, slots=True)
class _Agreement:
    """Sums over the matrix as whole numbers: nothing cancels."""

    n: int
    hits: int
    label_prediction: int
    label_label: int
    prediction_prediction: int

    @classmethod
    def of(cls, counts: Counts) -> "_Agreement":
        n, support, predicted = counts.n, counts.support, counts.predicted
        if n * n >= MOST:
            support, predicted = support.astype(object), predicted.astype(object)
        dots = ((support, predicted), (support, support), (predicted, predicted))
        return cls(n, int(counts.hits.sum()), *(int(np.dot(a, b)) for a, b in dots))

    def kappa(self) -> float | None:
        """Cohen's kappa; None where chance alone agrees always."""
        chance = self.label_prediction
        return _quotient(self.n * self.hits - chance, self.n * self.n - chance)

    def mcc(self) -> float | None:
        """Return the multiclass Matthews correlation; None where one side has a single class."""
        square = self.n * self.n
        variances = (square - self.label_label) * (square - self.prediction_prediction)
        if variances == 0:
            return None
        return (self.n * self.hits - self.label_prediction) / math.sqrt(variances)


def _ratio(part: Ints, whole: Ints) -> tuple[Floats, Flags]:
    nothing = whole == 0
    return part / np.where(nothing, 1, whole), nothing


def _quotient(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _average(classes: PerClass, weight: Floats) -> Average:
    whole = float(weight.sum()) or 1.0
    values = (classes.precision, classes.recall, classes.f1)
    return Average(*(float((value * weight).sum()) / whole for value in values))
