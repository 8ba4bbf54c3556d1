"""The metrics of a confusion matrix: pure functions of `Counts`.

Definitions as in scikit-learn, with 0/0 = 0.0; what was 0/0 is named.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pttool.core.eval.types import Counts, Flags, Floats, Ints

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

    `correct` of `n` samples are right. `macro` averages `macro_classes` classes; `classes_seen`
    occur as label or prediction. Names in `undefined` were 0/0, or an average of nothing, and are
    0.0. None is what the task has not: with one class per sample the Hamming loss and the average
    over samples, with several the rest.
    """

    n: int
    correct: int
    num_classes: int
    classes_seen: int
    accuracy: float
    balanced_accuracy: float | None
    kappa: float | None
    mcc: float | None
    micro: Average
    macro: Average
    macro_classes: int
    weighted: Average
    mean_iou: float
    undefined: tuple[str, ...]
    hamming_loss: float | None = None
    samples: Average | None = None


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
    seen, averaged = seen_and_averaged(counts, macro)
    averaged[[c for c in ignored if 0 <= c < counts.num_classes]] = False
    agreement = _Agreement.of(counts)
    values: dict[str, float | None] = {
        "accuracy": quotient(agreement.hits, agreement.n),
        "balanced_accuracy": mean(classes.recall[counts.support > 0]),
        "kappa": agreement.kappa(),
        "mcc": agreement.mcc(),
        "mean_iou": mean(classes.iou[averaged]),
    }
    accuracy = values["accuracy"] or 0.0
    return Totals(
        n=agreement.n,
        correct=agreement.hits,
        num_classes=counts.num_classes,
        classes_seen=int(seen.sum()),
        micro=Average(accuracy, accuracy, accuracy),
        macro=average(classes, averaged),
        macro_classes=int(averaged.sum()),
        weighted=average(classes, counts.support),
        accuracy=accuracy,
        balanced_accuracy=values["balanced_accuracy"] or 0.0,
        kappa=values["kappa"] or 0.0,
        mcc=values["mcc"] or 0.0,
        mean_iou=values["mean_iou"] or 0.0,
        undefined=tuple(name for name, value in values.items() if value is None),
    )


@dataclass(frozen=True, slots=True)
class Confused:
    """Of each class, the classes it was confused with: count descending, then class ascending."""

    other: Ints
    count: Ints
    starts: Ints

    def each(self, most: int = 5, labels: Ints | None = None) -> Iterator[list[tuple[int, int]]]:
        """Yield at most `most` pairs (other class, count > 0) of every class, or those in `labels`.

        A class is never confused with itself.
        """
        labels = np.arange(len(self.starts) - 1) if labels is None else labels
        begins = self.starts[labels]
        ends = np.minimum(begins + most, self.starts[labels + 1])
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            others, numbers = self.other[begin:end], self.count[begin:end]
            yield list(zip(others.tolist(), numbers.tolist(), strict=True)) if begin < end else []


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
        return quotient(self.n * self.hits - chance, self.n * self.n - chance)

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


def seen_and_averaged(counts: Counts, macro: Macro) -> tuple[Flags, Flags]:
    """Return which classes occur as label or prediction, and which a macro average is over."""
    seen = (counts.support + counts.predicted) > 0
    return seen, seen.copy() if macro == "seen" else np.ones(counts.num_classes, np.bool_)


def quotient(part: int, whole: int) -> float | None:
    """Return part / whole, or None where that is 0/0."""
    return part / whole if whole else None


def mean(values: Floats) -> float | None:
    """Return the mean, or None of nothing."""
    return float(values.mean()) if len(values) else None


def average(classes: PerClass, weight: Ints | Flags) -> Average:
    """Return the weighted average over classes; of no weight at all it is 0."""
    weights = weight.astype(np.float64)
    whole = float(weights.sum()) or 1.0
    values = (classes.precision, classes.recall, classes.f1)
    return Average(*(float((value * weights).sum()) / whole for value in values))
