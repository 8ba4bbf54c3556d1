"""The evaluation as a Report: one item per class, totals, intervals and gates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pttool.core.eval.evaluate import Evaluation, class_rows, evaluate, pairs
from pttool.core.eval.gates import Gate, Outcome, check, parse_gate
from pttool.core.eval.intervals import Interval, bootstrap, wilson
from pttool.core.eval.metrics import By, Macro
from pttool.core.eval.rows import ClassRow
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
FOOTER = (
    Column("n", "Samples", "count"),
    Column("accuracy", "Accuracy", "score"),
    Column("balanced_accuracy", "Balanced accuracy", "score"),
    Column("macro_f1", "Macro F1", "score"),
    Column("weighted_f1", "Weighted F1", "score"),
    Column("kappa", "Cohen's kappa", "score"),
    Column("mcc", "MCC", "score"),
)


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
    rows: list[ClassRow]
    report: Report


def make(predictions: Predictions, options: Options) -> Made:
    """Read the predictions and return their report. Raises as `evaluate` and `check` do."""
    evaluation = evaluate(
        predictions,
        macro=options.macro,
        ignored=options.ignored,
        topk=options.topk,
        ece_bins=options.ece_bins,
    )
    rows = list(class_rows(evaluation, by=options.confused_by, seen_only=options.seen_only))
    if options.sort is not None:
        rows.sort(key=_sort_key(options.sort))
    many = evaluation.counts.num_classes > MANY_CLASSES and options.sort is None
    worst = options.worst or (options.worst_of_many if many else None)
    if worst is not None:
        rows = sorted(rows, key=lambda row: row.f1)[:worst]
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


def _sort_key(field: str) -> Callable[[ClassRow], Any]:
    """Names alphabetically, labels upwards, samples and scores with the largest first."""
    if field in ("name", "label"):
        return lambda row: getattr(row, field)
    return lambda row: -(getattr(row, field) or 0.0)


def _intervals(evaluation: Evaluation, options: Options) -> dict[str, Interval] | None:
    confidence = options.confidence or (0.95 if options.gates_on_interval else None)
    if confidence is None:
        return None
    counts = evaluation.counts
    found = bootstrap(
        counts,
        seed=options.seed,
        confidence=confidence,
        macro=options.macro,
        ignored=options.ignored,
    )
    return {**found, "accuracy": wilson(int(counts.hits.sum()), counts.n, confidence)}


def to_report(
    evaluation: Evaluation,
    rows: Sequence[ClassRow],
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
        (*columns, CONFUSED_COLUMN),
        [_item(row, fields) for row in rows],
        {
            **summary(evaluation, intervals, outcomes),
            "pairs": [asdict(pair) for pair in pairs(evaluation, most_pairs)],
        },
        _footer(evaluation),
        notes(evaluation, rows) + _pair_notes(evaluation, most_pairs),
        failure(outcomes),
    )


def summary(
    evaluation: Evaluation, intervals: Mapping[str, Interval] | None, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Return the totals by the names of the JSON document."""
    totals, scores, dropped = evaluation.totals, evaluation.scores, evaluation.dropped
    ranking = None if scores is None else scores.ranking
    return {
        "n": totals.n,
        "num_classes": totals.num_classes,
        "classes_seen": totals.classes_seen,
        "macro_classes": totals.macro_classes,
        "accuracy": totals.accuracy,
        "balanced_accuracy": totals.balanced_accuracy,
        "kappa": totals.kappa,
        "mcc": totals.mcc,
        "mean_iou": totals.mean_iou,
        "micro": asdict(totals.micro),
        "macro": asdict(totals.macro),
        "weighted": asdict(totals.weighted),
        "undefined": list(totals.undefined),
        "score_kind": evaluation.score_kind,
        "topk": None if scores is None else {str(k): v for k, v in scores.topk.items()},
        **{
            name: None if scores is None else getattr(scores, name)
            for name in ("log_loss", "brier", "ece")
        },
        "macro_auc": None if ranking is None else ranking.macro_auc,
        "auc_classes": None if ranking is None else ranking.classes,
        "macro_ap": None if ranking is None else ranking.macro_ap,
        "ci": None if intervals is None else {name: list(v) for name, v in intervals.items()},
        "ignored": dropped.ignored,
        "duplicates_dropped": dropped.duplicates,
        "not_finite_dropped": dropped.not_finite,
        "gates": [asdict(outcome) for outcome in outcomes],
        "macro_f1": totals.macro.f1,
        "weighted_f1": totals.weighted.f1,
    }


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


def notes(evaluation: Evaluation, rows: Sequence[ClassRow]) -> tuple[str, ...]:
    """Return one note on what was 0/0, and one on what was left out."""
    told: tuple[str, ...] = ()
    undefined = sum(bool(row.undefined) for row in rows)
    if undefined:
        told += (f"{undefined} {_classes(undefined)} a score that is 0/0, given as 0",)
    totals = evaluation.totals
    if totals.macro_classes != totals.num_classes:
        told += (f"macro averages are over {totals.macro_classes} of {totals.num_classes} classes",)
    if evaluation.score_kind is not None:
        told += (f"scores were taken as {evaluation.score_kind}",)
    dropped = asdict(evaluation.dropped)
    left_out = [f"{count} {reason.replace('_', ' ')}" for reason, count in dropped.items() if count]
    if left_out:
        told += (f"samples left out: {', '.join(left_out)}",)
    return told


def _classes(number: int) -> str:
    return "class has" if number == 1 else "classes have"


def _pair_notes(evaluation: Evaluation, most: int) -> tuple[str, ...]:
    return tuple(
        f"{pair.count} of {pair.label_name} were taken for {pair.predicted_name}"
        for pair in pairs(evaluation, most)
    )


def _item(row: ClassRow, fields: Sequence[str]) -> dict[str, Any]:
    values = asdict(row)
    values["class"] = values.pop("name")
    values["undefined"] = list(row.undefined)
    values["confused"] = [
        {"class": other.name, "label": other.label, "count": other.count} for other in row.confused
    ]
    return {field: values[field] for field in fields}


def _footer(evaluation: Evaluation) -> tuple[Column, ...]:
    if evaluation.scores is None:
        return FOOTER
    return (
        *FOOTER,
        Column("log_loss", "Log-loss", "score"),
        Column("ece", "Calibration error", "score"),
        Column("macro_auc", "Macro AUC", "score"),
    )
