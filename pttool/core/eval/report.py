"""The evaluation as a Report: one item per class, totals, intervals and gates."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pttool.core.eval.evaluate import Evaluation, evaluate, pairs
from pttool.core.eval.gates import Gate, Outcome, check, parse_gate
from pttool.core.eval.intervals import Interval, bootstrap, wilson
from pttool.core.eval.listing import Items, Rows, listed
from pttool.core.eval.metrics import By, Macro
from pttool.core.eval.multilabel import evaluate_sets
from pttool.core.eval.summary import footer, notes, summary
from pttool.core.eval.types import Predictions
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, UsageError

MANY_CLASSES = 40
FIELDS = (
    "class", "label", "support", "precision", "recall", "f1", "auc", "ap", "undefined", "confused",
)  # fmt: skip
COLUMNS = (
    Column("class", "Class"),
    Column("label", "Label", "count"),
    Column("support", "Samples", "count"),
    Column("precision", "Precision", "score"),
    Column("recall", "Recall", "score"),
    Column("f1", "F1", "score"),
)
RANKING_COLUMNS = (Column("auc", "AUC", "score"), Column("ap", "AP", "score"))
CONFUSED_COLUMN = Column("confused", "Confused with", "tally", optional=True)


@dataclass(frozen=True, slots=True)
class Options:
    """What is computed and listed.

    `worst` lists the classes with the lowest F1, lowest first; `worst_of_many` does so only where
    there are more than 40.
    """

    confused_by: By = "row"
    macro: Macro = "seen"
    seen_only: bool = False
    worst: int | None = None
    worst_of_many: int | None = None
    sort: str | None = None
    pairs: int = 0
    iou: bool = False
    topk: tuple[int, ...] = (1, 5)
    ece_bins: int = 15
    ignored: tuple[int, ...] = ()
    confidence: float | None = None
    seed: int = 0
    gates: tuple[Gate, ...] = ()
    gates_on_interval: bool = False

    @classmethod
    def parse(cls, *, topk: str, gates: Sequence[str], **rest: Any) -> "Options":
        """Return the options, with `topk` and `gates` as a user types them.

        Raises UsageError for what can't be read.
        """
        ks = topk.split(",")
        if not all(k.strip().isascii() and k.strip().isdigit() and int(k) > 0 for k in ks):
            raise UsageError(f"--topk {topk!r}: is not a list of numbers", "--topk 1,5")
        return cls(topk=tuple(map(int, ks)), gates=tuple(map(parse_gate, gates)), **rest)


@dataclass(frozen=True, slots=True)
class Made:
    """An evaluation, the rows to list, and the report on both."""

    evaluation: Evaluation
    rows: Rows
    report: Report


def make(predictions: Predictions, options: Options) -> Made:
    """Read the predictions and return their report. Raises as `evaluate` and `check` do."""
    evaluation = _evaluated(predictions, options)
    many = evaluation.counts.num_classes > MANY_CLASSES and options.sort is None
    worst = options.worst or (options.worst_of_many if many else None)
    labels = listed(evaluation, seen_only=options.seen_only, sort=options.sort, worst=worst)
    rows = Rows(evaluation, labels, options.confused_by)
    shown = f"the {worst} classes with the lowest F1 are shown; --sort shows all"
    intervals = _intervals(evaluation, options)
    outcomes = check(options.gates, evaluation, intervals if options.gates_on_interval else None)
    report = to_report(
        evaluation,
        rows,
        intervals=intervals,
        outcomes=outcomes,
        with_iou=options.iou,
        most_pairs=options.pairs,
    )
    is_cut = worst is not None and options.worst is None
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
    confidence = options.confidence or (0.95 if options.gates_on_interval else None)
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
    *,
    intervals: Mapping[str, Interval] | None = None,
    outcomes: Sequence[Outcome] = (),
    with_iou: bool = False,
    most_pairs: int = 0,
) -> Report:
    """Return the rows and totals; the report fails if a gate did."""
    columns = COLUMNS + (RANKING_COLUMNS if evaluation.scores is not None else ())
    columns += (Column("iou", "IoU", "score"),) if with_iou else ()
    fields = (*FIELDS, "iou") if with_iou else FIELDS
    return Report(
        fields,
        columns if evaluation.is_multilabel else (*columns, CONFUSED_COLUMN),
        Items(rows, fields),
        {
            **summary(evaluation, intervals, outcomes),
            "pairs": [asdict(pair) for pair in pairs(evaluation, most_pairs)],
        },
        footer(evaluation),
        notes(evaluation, rows.undefined) + _pair_notes(evaluation, most_pairs),
        failure(outcomes),
    )


def failure(outcomes: Sequence[Outcome]) -> CheckFailedError | None:
    """Return the error of the gates that failed, on one line."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if not failed:
        return None
    told = "; ".join(
        f"{outcome.gate}: is {'undefined' if outcome.value is None else f'{outcome.value:.6g}'}"
        for outcome in failed
    )
    return CheckFailedError(f"{len(failed)} of {len(outcomes)} gates failed: {told}")


def _pair_notes(evaluation: Evaluation, most: int) -> tuple[str, ...]:
    return tuple(
        f"{pair.count} of {pair.label_name} were taken for {pair.predicted_name}"
        for pair in pairs(evaluation, most)
    )
