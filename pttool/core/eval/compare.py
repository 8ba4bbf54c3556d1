"""Two models on the same samples: differences, whether they can be chance, which classes lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.counts import from_arrays
from pttool.core.eval.intervals import mcnemar, paired_bootstrap
from pttool.core.eval.metrics import per_class, totals
from pttool.core.eval.types import Counts, Ints, Predictions
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, InputError

METRICS = ("accuracy", "balanced_accuracy", "kappa", "mcc")
AVERAGES = ("macro_precision", "macro_recall", "macro_f1", "weighted_f1")
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
    Column("mcnemar_p", "McNemar's p"),
    Column("accuracy_difference_low", "Accuracy B - A from", "score"),
    Column("accuracy_difference_high", "to", "score"),
)


@dataclass(frozen=True, slots=True)
class Answers:
    """All samples of one model: arrays of length n, sorted by index where there is one."""

    label: Ints
    prediction: Ints
    index: NDArray[Any] | None


def compare(
    a: Predictions,
    b: Predictions,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    fail_if_worse: bool = False,
) -> Report:
    """Return the metrics of both, the classes whose recall fell, and how sure the difference is.

    Samples are aligned by their index where both have one, else by row. The interval of B - A is a
    paired bootstrap's, p McNemar's exact one. `fail_if_worse` makes a lower accuracy of B a
    failure.

    Raises InputError where the samples are not the same.
    """
    first, second = _aligned(_gather(a), _gather(b))
    size = max(a.num_classes or 0, b.num_classes or 0) or None
    counts = [from_arrays(each.label, each.prediction, size) for each in (first, second)]
    right = [x.prediction == x.label for x in (first, second)]
    only_a, only_b = (int((right[i] & ~right[1 - i]).sum()) for i in (0, 1))
    n = len(first.label)
    low, high = paired_bootstrap(only_a, only_b, n, confidence=confidence, seed=seed)
    summary = {
        "n": n,
        "only_a_right": only_a,
        "only_b_right": only_b,
        "mcnemar_p": mcnemar(only_a, only_b),
        "accuracy_difference": (only_b - only_a) / n,
        "accuracy_difference_low": low,
        "accuracy_difference_high": high,
        "confidence": confidence,
        "worse_classes": _worse(counts[0], counts[1], {**b.names, **a.names}),
    }
    worse = fail_if_worse and only_b < only_a
    failure = CheckFailedError(f"B is worse by {(only_a - only_b) / n:.6g}") if worse else None
    fields = tuple(column.key for column in COLUMNS)
    return Report(fields, COLUMNS, _items(counts), summary, FOOTER, (), failure)


def _gather(predictions: Predictions) -> Answers:
    blocks = list(predictions.blocks)
    label = np.concatenate([block.label for block in blocks])
    prediction = np.concatenate([block.prediction for block in blocks])
    if any(block.index is None for block in blocks):
        return Answers(label, prediction, None)
    index = np.concatenate([block.index for block in blocks if block.index is not None])
    order = np.argsort(index, kind="stable")
    return Answers(label[order], prediction[order], index[order])


def _aligned(a: Answers, b: Answers) -> tuple[Answers, Answers]:
    if len(a.label) != len(b.label):
        raise InputError(
            f"A has {len(a.label)} samples and B {len(b.label)}",
            "compare two models on the same samples",
        )
    by_index = a.index is not None and b.index is not None
    if by_index and not np.array_equal(a.index, b.index):  # type: ignore[arg-type]
        raise InputError("A and B hold samples of different index", "compare the same samples")
    different = np.flatnonzero(a.label != b.label)
    if len(different):
        hint = "the rows must be in the same order, or carry an index" if not by_index else None
        raise InputError(
            f"A and B have different labels for {len(different)} samples, first in row "
            f"{int(different[0])}: {int(a.label[different[0]])} and {int(b.label[different[0]])}",
            hint,
        )
    return a, b


def _items(counts: Sequence[Counts]) -> list[dict[str, Any]]:
    first, second = (totals(each) for each in counts)
    values = []
    for name in METRICS:
        values.append((name, getattr(first, name), getattr(second, name)))
    for name in AVERAGES:
        average, metric = name.split("_")
        pair = (getattr(getattr(each, average), metric) for each in (first, second))
        values.append((name, *pair))
    return [{"metric": m, "a": a, "b": b, "difference": b - a} for m, a, b in values]


def _worse(a: Counts, b: Counts, names: dict[int, str]) -> list[dict[str, Any]]:
    """Return the classes whose recall fell, the largest fall first."""
    recall_a, recall_b = per_class(a).recall, per_class(b).recall
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
