"""The evaluation as a Report: one item per class, totals, intervals and gates."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pttool.core.eval.evaluate import Evaluation, evaluate, pairs
from pttool.core.eval.gates import Gate, Outcome, check, failure, parse_gate
from pttool.core.eval.measuring.metrics import By, Macro
from pttool.core.eval.measuring.multilabel import evaluate_sets
from pttool.core.eval.trust.intervals import (
    RESAMPLES,
    Interval,
    bootstrap,
    resamples_drawn,
    wilson,
)
from pttool.core.eval.types import Predictions
from pttool.core.eval.writing.listing import Items, Rows, listed
from pttool.core.eval.writing.rows import Pair
from pttool.core.eval.writing.summary import footer, notes, summary
from pttool.core.report import Column, Report
from pttool.errors import UsageError

MANY_CLASSES = 40
TOPK = (1, 5)
ECE_BINS = 15
FIELDS = (
    "class", "label", "support", "precision", "recall", "f1", "auc", "ap", "undefined", "confused",
)  # fmt: skip
COLUMNS = (
    Column("class", "Class"),
    Column("label", "Label", "count", optional=True),
    Column("support", "Samples", "count"),
    Column("precision", "Precision", "score"),
    Column("recall", "Recall", "score"),
    Column("f1", "F1", "score"),
)
RANKING_COLUMNS = (
    Column("auc", "AUC", "score", optional=True),
    Column("ap", "AP", "score", optional=True),
)
PAIRS_COLUMN = Column("pairs", "Most confused pairs", "pairs")
CONFUSED_COLUMN = Column("confused", "Confused with", "tally", optional=True)


@dataclass(frozen=True, slots=True)
class Options:
    """What is computed and listed.

    `worst` lists the classes with the lowest F1, lowest first; `worst_of_many` does so only where
    there are more than 40. `of_scores` are options that were given and mean nothing without scores.
    `notes_pairs`: for formats that have no other place for them.
    """

    confused_by: By = "row"
    macro: Macro = "seen"
    seen_only: bool = False
    worst: int | None = None
    worst_of_many: int | None = None
    sort: str | None = None
    pairs: int = 0
    notes_pairs: bool = False
    iou: bool = False
    topk: tuple[int, ...] = TOPK
    ece_bins: int = ECE_BINS
    of_scores: tuple[str, ...] = ()
    ignored: tuple[int, ...] = ()
    confidence: float | None = None
    seed: int = 0
    gates: tuple[Gate, ...] = ()
    gates_on_interval: bool = False

    @classmethod
    def parse(
        cls, *, topk: str | None, ece_bins: int | None, gates: Sequence[str], **rest: Any
    ) -> "Options":
        """Return the options, with `topk` and `gates` as a user types them, None for not at all.

        Raises UsageError for what can't be read, and for gates of metrics that don't exist.
        """
        given = {"--topk": topk, "--ece-bins": ece_bins}
        ks = TOPK if topk is None else _parse_topk(topk)
        return cls(
            topk=ks,
            ece_bins=ECE_BINS if ece_bins is None else ece_bins,
            of_scores=tuple(option for option, value in given.items() if value is not None),
            gates=tuple(parse_gate(gate, ks) for gate in gates),
            **rest,
        )

    @property
    def level(self) -> float | None:
        """The confidence of the intervals, None for no intervals."""
        return self.confidence or (0.95 if self.gates_on_interval else None)


def _parse_topk(text: str) -> tuple[int, ...]:
    ks = [k.strip() for k in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,9}", k) for k in ks):
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise UsageError(f"--topk {shown!r}: is not a list of numbers", "--topk 1,5")
    if not all(map(int, ks)):
        raise UsageError(f"--topk {text!r}: the label can't be among the 0 best", "count from 1")
    return tuple(map(int, ks))


@dataclass(frozen=True, slots=True)
class Made:
    """An evaluation, the rows to list, and the report on both."""

    evaluation: Evaluation
    rows: Rows
    report: Report


def make(predictions: Predictions, options: Options) -> Made:
    """Read the predictions and return their report. Raises as `evaluate` and `check` do."""
    if options.of_scores and predictions.score_kind is None:
        message = f"{options.of_scores[0]}: there are no scores to apply it to"
        raise UsageError(message, "name them with --scores KEY, or leave the option out")
    evaluation = _evaluated(predictions, options)
    many = evaluation.counts.num_classes > MANY_CLASSES and options.sort is None
    worst = options.worst or (options.worst_of_many if many else None)
    every = listed(evaluation, seen_only=options.seen_only)
    labels = listed(evaluation, seen_only=options.seen_only, sort=options.sort, worst=worst)
    rows = Rows(evaluation, labels, options.confused_by)
    shown = f"the {worst} classes with the lowest F1 are shown; --sort shows all"
    intervals = _intervals(evaluation, options)
    outcomes = check(options.gates, evaluation, intervals if options.gates_on_interval else None)
    report = to_report(evaluation, rows, options, intervals=intervals, outcomes=outcomes)
    is_cut = len(labels) < len(every) and options.worst is None
    return Made(evaluation, rows, report.noting(shown) if is_cut else report)


def _evaluated(predictions: Predictions, options: Options) -> Evaluation:
    if predictions.is_multilabel:
        return evaluate_sets(predictions, macro=options.macro)
    return evaluate(
        predictions,
        macro=options.macro,
        ignored=options.ignored,
        topk=options.topk,
        ece_bins=options.ece_bins,
    )


def _intervals(evaluation: Evaluation, options: Options) -> dict[str, Interval] | None:
    confidence = options.level
    if confidence is None:
        return None
    totals = evaluation.totals
    accuracy = {"accuracy": wilson(totals.correct, totals.n, confidence)}
    if evaluation.is_multilabel:  # which labels come together is not in the counts of each class
        return accuracy
    found = bootstrap(
        evaluation.counts,
        seed=options.seed,
        confidence=confidence,
        macro=options.macro,
        ignored=options.ignored,
    )
    return found | accuracy


def to_report(
    evaluation: Evaluation,
    rows: Rows,
    options: Options,
    *,
    intervals: Mapping[str, Interval] | None = None,
    outcomes: Sequence[Outcome] = (),
) -> Report:
    """Return the rows and totals; the report fails if a gate did."""
    columns = COLUMNS + (RANKING_COLUMNS if evaluation.scores is not None else ())
    columns += (Column("iou", "IoU", "score"),) if options.iou else ()
    fields = (*FIELDS, "iou") if options.iou else FIELDS
    found = pairs(evaluation, options.pairs)
    told = notes(evaluation, rows.undefined)
    return Report(
        fields,
        columns if evaluation.is_multilabel else (*columns, CONFUSED_COLUMN),
        Items(rows, fields),
        {
            **summary(evaluation, intervals, outcomes, options.level),
            "pairs": [asdict(pair) for pair in found],
        },
        footer(evaluation, intervals, options.level, with_iou=options.iou)
        + ((PAIRS_COLUMN,) if found else ()),
        told + _fewer(evaluation, intervals) + (_pair_notes(found) if options.notes_pairs else ()),
        failure(outcomes),
    )


def _fewer(evaluation: Evaluation, intervals: Mapping[str, Interval] | None) -> tuple[str, ...]:
    """Return the note on a bootstrap of fewer resamples than usual."""
    if intervals is None or evaluation.is_multilabel:
        return ()
    drawn = resamples_drawn(evaluation.counts)
    told = f"the intervals are from {drawn} resamples, not {RESAMPLES}: there are many classes"
    return (told,) if drawn < RESAMPLES else ()


def _pair_notes(found: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(
        f"{pair.count} of {pair.label_name} were taken for {pair.predicted_name}" for pair in found
    )
