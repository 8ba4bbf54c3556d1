"""Two models on the same samples: differences, whether they can be chance, which classes lost."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.measuring.counts import from_arrays
from pttool.core.eval.measuring.metrics import PerClass, Totals, per_class, totals
from pttool.core.eval.measuring.multilabel import SetCounter, set_totals
from pttool.core.eval.trust.intervals import mcnemar, paired_bootstrap
from pttool.core.eval.types import Flags, Predictions
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, InputError

METRICS = ("accuracy", "hamming_loss", "balanced_accuracy", "kappa", "mcc")
AVERAGES = ("macro_precision", "macro_recall", "macro_f1", "weighted_f1")
# One spelling of each number, that fits into 64 bits: 007 is another index than 7.
WHOLE_INDEX = re.compile("0|-?[1-9][0-9]{0,17}")
COLUMNS = (
    Column("metric", "Metric"),
    Column("a", "A", "score"),
    Column("b", "B", "score"),
    Column("difference", "B - A", "score"),
)
FOOTER = (
    Column("n", "Samples", "count"),
    Column("only_a_right", "Right in A alone", "count"),
    Column("only_b_right", "Right in B alone", "count"),
    Column("mcnemar_p", "McNemar's p", "p_value"),
)


@dataclass(frozen=True, slots=True)
class Answers:
    """All samples of one model: arrays of length n, sorted by index where there is one.

    Labels and predictions are (n,) class numbers, or (n, C) of bool.
    """

    label: NDArray[Any]
    prediction: NDArray[Any]
    index: NDArray[Any] | None

    @property
    def is_right(self) -> Flags:
        """Which samples are right, of several labels in all of them."""
        same = self.prediction == self.label
        return same if same.ndim == 1 else np.asarray(same.all(axis=1))


@dataclass(frozen=True, slots=True)
class Metrics:
    """What one model's samples come to."""

    classes: PerClass
    totals: Totals

    @classmethod
    def of(
        cls, answers: Answers, num_classes: int | None, ignored: Collection[int] = ()
    ) -> "Metrics":
        """Count and score the samples; classes in `ignored` are in no macro average."""
        if answers.label.ndim == 1:
            counts = from_arrays(answers.label, answers.prediction, num_classes)
            return cls(per_class(counts), totals(counts, ignored=ignored))
        counter = SetCounter(answers.label.shape[1])
        counter.add(answers.label, answers.prediction)
        counts = counter.counts()
        return cls(per_class(counts), set_totals(counts, counter.samples))


def compare(
    a: Predictions,
    b: Predictions,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    fail_if_worse: bool = False,
    most_worse: int | None = None,
    ignored: Collection[int] = (),
) -> Report:
    """Return the metrics of both, the classes whose recall fell, and how sure the difference is.

    The items are the metrics of the whole, then `recall:CLASS` of the classes where it fell, those
    that fell most first; at most `most_worse` of them.

    Samples are aligned by their index where both have one, else by row. The interval of B - A is a
    paired bootstrap's, p McNemar's exact one; with several labels per sample, one is right if all
    of them are. `fail_if_worse` makes a lower accuracy of B a failure. `ignored` are the labels
    whose samples were dropped.

    Raises InputError where the samples are not the same.
    """
    names = _one_vocabulary(a.names, b.names, ignored)
    first, second = _aligned(_gather(a, names), _gather(b, names))
    size = max(a.num_classes or 0, b.num_classes or 0, *(n + 1 for n in names)) or None
    metrics = [Metrics.of(each, size, ignored) for each in (first, second)]
    right = [each.is_right for each in (first, second)]
    only_a, only_b = (int((right[i] & ~right[1 - i]).sum()) for i in (0, 1))
    n = len(first.label)
    low, high = paired_bootstrap(only_a, only_b, n, confidence=confidence, seed=seed)
    worse = _worse(metrics[0].classes, metrics[1].classes, names)
    summary = {
        "n": n,
        "only_a_right": only_a,
        "only_b_right": only_b,
        "mcnemar_p": mcnemar(only_a, only_b),
        "accuracy_difference": (only_b - only_a) / n,
        "accuracy_difference_low": low,
        "accuracy_difference_high": high,
        "ci": {"accuracy_difference": [low, high]},
        "confidence": confidence,
        "worse_classes": worse,
    }
    interval = f"Accuracy B - A, {100 * confidence:.6g} % interval"
    return Report(
        tuple(column.key for column in COLUMNS),
        COLUMNS,
        _items(metrics) + _worse_items(worse[:most_worse]),
        summary,
        (*FOOTER, Column("ci.accuracy_difference", interval, "interval")),
        _notes(a, b, worse, most_worse),
        _failure(metrics, only_b - only_a) if fail_if_worse else None,
    )


def _failure(metrics: Sequence[Metrics], gained: int) -> CheckFailedError | None:
    """Return the error of a B that has fewer samples right."""
    if gained >= 0:
        return None
    first, second = (each.totals.accuracy for each in metrics)
    told = f"B's accuracy {second:.6g} is lower than A's {first:.6g}"
    return CheckFailedError(f"{told}, by {first - second:.6g}")


def _notes(
    a: Predictions, b: Predictions, worse: Sequence[Any], most_worse: int | None
) -> tuple[str, ...]:
    told = tuple(
        f"{model}: {note}"
        for model, each in (("A", a), ("B", b))
        if each.beside is not None
        for note in each.beside.notes()
    )
    if worse:
        verb = "class has" if len(worse) == 1 else "classes have"
        cut = most_worse is not None and len(worse) > most_worse
        rest = f"; the {most_worse} that lost most are shown" if cut else ""
        told += (f"{len(worse)} {verb} a lower recall in B{rest}",)
    return told


def _one_vocabulary(
    a: Mapping[int, str], b: Mapping[int, str], ignored: Collection[int]
) -> Mapping[int, str]:
    """Return names for both. Without --classes each has numbered those that it holds itself."""
    if a == b:
        return a
    if not (a and b):
        kinds = ("names", "numbers") if a else ("numbers", "names")
        message = f"the labels of A are {kinds[0]}, those of B {kinds[1]}"
        raise InputError(message, "say which name has which number: --classes FILE")
    if ignored:
        message = "A and B hold different names, so that a label to ignore has no one number"
        raise InputError(message, "say which name has which number: --classes FILE")
    return dict(enumerate(sorted({*a.values(), *b.values()})))


def _gather(predictions: Predictions, names: Mapping[int, str]) -> Answers:
    """Return all samples, with the class numbers of `names`."""
    blocks = list(predictions.blocks)
    label = np.concatenate([block.label for block in blocks])
    prediction = np.concatenate([block.prediction for block in blocks])
    if predictions.names != names:
        number = {name: label for label, name in names.items()}
        renumbered = np.array([number[name] for _, name in sorted(predictions.names.items())])
        label, prediction = renumbered[label], renumbered[prediction]
    if any(block.index is None for block in blocks):
        return Answers(label, prediction, None)
    index = _whole(np.concatenate([block.index for block in blocks if block.index is not None]))
    order = np.argsort(index, kind="stable")
    return Answers(label[order], prediction[order], index[order])


def _whole(index: NDArray[Any]) -> NDArray[Any]:
    """Return an index of text as int64 if all of it is whole numbers, as those of a CSV are."""
    if index.dtype.kind == "O" and all(map(WHOLE_INDEX.fullmatch, index)):
        return index.astype(np.int64)
    return index


def _aligned(a: Answers, b: Answers) -> tuple[Answers, Answers]:
    if len(a.label) != len(b.label):
        raise InputError(
            f"A has {len(a.label)} samples and B {len(b.label)}",
            "compare two models on the same samples",
        )
    index = None
    if a.index is not None and b.index is not None:
        index = a.index
        if not np.array_equal(index, b.index):
            raise InputError("A and B hold samples of different index", "compare the same samples")
    if a.label.shape[1:] != b.label.shape[1:]:
        message = f"A has {a.label.shape[1]} classes and B {b.label.shape[1]}"
        raise InputError(message, "compare two models on the same classes")
    different = np.flatnonzero((a.label != b.label).reshape(len(a.label), -1).any(axis=1))
    if len(different):
        row = int(different[0])
        hint, place = "the rows must be in the same order, or carry an index", f"in row {row}"
        if index is not None:
            hint, place = "are both of the same data set?", f"at index {str(index[row])[:200]}"
        held = "" if a.label.ndim > 1 else f": {int(a.label[row])} and {int(b.label[row])}"
        raise InputError(
            f"A and B have different labels for {len(different)} samples, first {place}{held}",
            hint,
        )
    return a, b


def _items(metrics: Sequence[Metrics]) -> list[dict[str, Any]]:
    first, second = (each.totals for each in metrics)
    values = [
        (name, getattr(first, name), getattr(second, name))
        for name in METRICS
        if getattr(first, name) is not None
    ]
    for name in AVERAGES:
        average, metric = name.split("_")
        pair = (getattr(getattr(each, average), metric) for each in (first, second))
        values.append((name, *pair))
    return [{"metric": m, "a": a, "b": b, "difference": b - a} for m, a, b in values]


def _worse_items(worse: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the recall of each class as a row, named as in a gate; of equal names by label."""
    times = Counter(each["class"] for each in worse)
    return [
        {
            "metric": f"recall:{each['class' if times[each['class']] == 1 else 'label']}",
            "a": each["recall_a"],
            "b": each["recall_b"],
            "difference": each["recall_b"] - each["recall_a"],
        }
        for each in worse
    ]


def _worse(a: PerClass, b: PerClass, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return the classes whose recall fell, the largest fall first."""
    recall_a, recall_b = a.recall, b.recall
    size = min(len(recall_a), len(recall_b))
    change = recall_b[:size] - recall_a[:size]
    order = np.argsort(change, kind="stable")
    return [
        {
            "class": names.get(label, str(label)),
            "label": label,
            "recall_a": float(recall_a[label]),
            "recall_b": float(recall_b[label]),
        }
        for label in order.tolist()
        if change[label] < 0
    ]
