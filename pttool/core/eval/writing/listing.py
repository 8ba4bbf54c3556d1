"""Which classes are listed in which order, and their rows; each is made when it is asked for."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.measuring.metrics import By, confused
from pttool.core.eval.types import Ints
from pttool.core.eval.writing.rows import ClassRow, Confused
from pttool.core.report import Item

CHUNK = 1 << 12


class Rows(Sequence[ClassRow]):
    """The rows of the classes in `labels`, in that order.

    Rows of a million classes at once would take a gigabyte, their columns take a tenth of it.
    """

    def __init__(self, evaluation: Evaluation, labels: Ints, by: By = "row", most: int = 5) -> None:
        self.evaluation = evaluation
        self.labels = labels
        self._confused = confused(evaluation.counts, by)
        self._most = most

    def only(self, labels: Ints) -> "Rows":
        """Return the rows of these classes."""
        rows = copy.copy(self)
        rows.labels = labels
        return rows

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[ClassRow]:
        for start in range(0, len(self.labels), CHUNK):
            yield from self._made(self.labels[start : start + CHUNK])

    def __getitem__(self, index: Any) -> Any:
        rows = list(self._made(np.atleast_1d(self.labels[index])))
        return rows if isinstance(index, slice) else rows[0]

    @property
    def undefined(self) -> int:
        """How many rows have a score that is 0/0."""
        classes = self.evaluation.classes
        flags = classes.no_precision | classes.no_recall | classes.no_f1
        return int(flags[self.labels].sum())

    def _made(self, labels: Ints) -> Iterator[ClassRow]:
        evaluation, classes, name = self.evaluation, self.evaluation.classes, self.evaluation.name
        ranking = None if evaluation.scores is None else evaluation.scores.ranking
        columns: list[list[Any]] = [
            column[labels].tolist()
            for column in (
                evaluation.counts.support, classes.precision, classes.recall, classes.f1,
                classes.iou, classes.no_precision, classes.no_recall, classes.no_f1,
            )
        ]  # fmt: skip
        others = self._confused.each(self._most, labels)
        for label, support, precision, recall, f1, iou, *flags, pairs in zip(
            labels.tolist(), *columns, others, strict=True
        ):
            yield ClassRow(
                name(label), label, support, precision, recall, f1,
                None if ranking is None else ranking.auc[label],
                None if ranking is None else ranking.ap[label],
                iou,
                _undefined(*flags),
                tuple(Confused(name(other), other, count) for other, count in pairs),
            )  # fmt: skip


class Items(Sequence[Item]):
    """The rows as the items of a report."""

    def __init__(self, rows: Rows, fields: Sequence[str]) -> None:
        self._rows = rows
        self._fields = fields

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Item]:
        return (_item(row, self._fields) for row in self._rows)

    def __getitem__(self, index: Any) -> Any:
        rows = self._rows[index]
        if isinstance(index, slice):
            return [_item(row, self._fields) for row in rows]
        return _item(rows, self._fields)


def listed(
    evaluation: Evaluation,
    *,
    seen_only: bool = False,
    sort: str | None = None,
    worst: int | None = None,
) -> Ints:
    """Return the classes to list, by label if not told otherwise.

    `sort` puts names alphabetically, labels upwards, samples and scores with the largest first;
    `worst` leaves so many with the lowest F1, lowest first where nothing else sorts them.
    """
    counts, classes = evaluation.counts, evaluation.classes
    labels: Ints = np.arange(counts.num_classes)
    if seen_only:
        labels = np.flatnonzero(counts.support + counts.predicted)
    if worst is not None:
        labels = worst_of(evaluation, labels, worst)
    if sort is not None:
        labels = np.sort(labels)
    if sort == "name":
        labels = np.array(sorted(labels.tolist(), key=evaluation.name), np.int64)
    elif sort not in (None, "label"):
        column = counts.support if sort == "support" else getattr(classes, sort or "")
        labels = labels[np.argsort(-column[labels], kind="stable")]
    return labels


def worst_of(evaluation: Evaluation, labels: Ints, most: int) -> Ints:
    """Return the classes with the lowest F1, lowest first; those that never occur come last."""
    counts, f1 = evaluation.counts, evaluation.classes.f1[labels]
    never = (counts.support + counts.predicted)[labels] == 0
    return labels[np.lexsort((f1, never))[:most]]


def _undefined(precision: bool, recall: bool, f1: bool) -> tuple[str, ...]:
    if not (precision or recall or f1):
        return ()
    flags = {"precision": precision, "recall": recall, "f1": f1}
    return tuple(name for name, flag in flags.items() if flag)


def _item(row: ClassRow, fields: Sequence[str]) -> Item:
    others = [{"class": o.name, "label": o.label, "count": o.count} for o in row.confused]
    replaced = {"class": row.name, "undefined": list(row.undefined), "confused": others}
    return {
        field: replaced[field] if field in replaced else getattr(row, field) for field in fields
    }
