"""The totals of a report: by name for JSON, below a table, and what a note must say."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.gates import Outcome
from pttool.core.eval.measuring.metrics import Average
from pttool.core.eval.measuring.score_metrics import ScoreMetrics
from pttool.core.eval.trust.intervals import Interval
from pttool.core.report import Column

FOOTER = (
    Column("n", "Samples", "count"),
    Column("accuracy", "Accuracy", "score"),
    Column("balanced_accuracy", "Balanced accuracy", "score"),
    Column("macro_f1", "Macro F1", "score"),
    Column("weighted_f1", "Weighted F1", "score"),
    Column("kappa", "Cohen's kappa", "score"),
    Column("mcc", "MCC", "score"),
)
SCORES_FOOTER = (
    Column("log_loss", "Log-loss", "score"),
    Column("brier", "Brier score", "score"),
    Column("ece", "Calibration error", "score"),
)
RANKING_FOOTER = (
    Column("macro_auc", "Macro AUC", "score"),
    Column("macro_ap", "Macro AP", "score"),
)
SETS_FOOTER = (
    Column("n", "Samples", "count"),
    Column("accuracy", "Subset accuracy", "score"),
    Column("hamming_loss", "Hamming loss", "score"),
    Column("micro_f1", "Micro F1", "score"),
    Column("macro_f1", "Macro F1", "score"),
    Column("weighted_f1", "Weighted F1", "score"),
    Column("samples_f1", "F1 averaged over samples", "score"),
)
TITLES = {"kappa": "Cohen's kappa", "mcc": "MCC"}


def summary(
    evaluation: Evaluation,
    intervals: Mapping[str, Interval] | None,
    outcomes: Sequence[Outcome],
    confidence: float | None = None,
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
        "hamming_loss": totals.hamming_loss,
        "mean_iou": totals.mean_iou,
        "micro": asdict(totals.micro),
        "macro": asdict(totals.macro),
        "weighted": asdict(totals.weighted),
        "samples": _average(totals.samples),
        "undefined": list(totals.undefined),
        "score_kind": evaluation.score_kind,
        "threshold": evaluation.threshold,
        "topk": _topk(scores),
        **{
            name: None if scores is None else getattr(scores, name)
            for name in ("log_loss", "brier", "ece")
        },
        "macro_auc": None if ranking is None else ranking.macro_auc,
        "auc_classes": None if ranking is None else ranking.classes,
        "macro_ap": None if ranking is None else ranking.macro_ap,
        "ci": None if intervals is None else {name: list(v) for name, v in intervals.items()},
        "ci_level": None if intervals is None else confidence,
        "ignored": dropped.ignored,
        "duplicates_dropped": dropped.duplicates,
        "not_finite_dropped": dropped.not_finite,
        "beside": None if evaluation.beside is None else asdict(evaluation.beside),
        "gates": [asdict(outcome) for outcome in outcomes],
        "micro_f1": totals.micro.f1,
        "macro_f1": totals.macro.f1,
        "weighted_f1": totals.weighted.f1,
        "samples_f1": None if totals.samples is None else totals.samples.f1,
    }


def footer(
    evaluation: Evaluation,
    intervals: Mapping[str, Interval] | None,
    confidence: float | None,
    *,
    with_iou: bool = False,
) -> tuple[Column, ...]:
    """Return the totals that stand below a table: all that was measured or asked for."""
    columns: tuple[Column, ...] = SETS_FOOTER if evaluation.is_multilabel else FOOTER
    columns += (Column("mean_iou", "Mean IoU", "score"),) if with_iou else ()
    scores = evaluation.scores
    if scores is not None:
        columns += tuple(Column(f"topk.{k}", f"Top-{k} accuracy", "score") for k in scores.topk)
        columns += () if evaluation.is_multilabel else SCORES_FOOTER
        columns += RANKING_FOOTER if scores.ranking is not None else ()
    if intervals is not None and confidence is not None:
        level = f"{100 * confidence:.6g} % interval"
        columns += tuple(
            Column(f"ci.{name}", f"{_title(name)}, {level}", "interval") for name in intervals
        )
    return columns


def _title(name: str) -> str:
    words = name.replace("_", " ").replace("f1", "F1")
    return TITLES.get(name, words[:1].upper() + words[1:])


def notes(evaluation: Evaluation, undefined: int) -> tuple[str, ...]:
    """Return the notes: on `undefined` rows with a score that is 0/0, on averages and scores."""
    told: tuple[str, ...] = ()
    if undefined:
        told += (f"{undefined} {_classes(undefined)} a score that is 0/0, given as 0",)
    totals = evaluation.totals
    if totals.undefined:
        verb = "is" if len(totals.undefined) == 1 else "are"
        told += (f"{' and '.join(totals.undefined)} {verb} 0/0, given as 0",)
    told += shared_names(evaluation.names, totals.num_classes)
    if totals.macro_classes != totals.num_classes:
        told += (f"macro averages are over {totals.macro_classes} of {totals.num_classes} classes",)
    if evaluation.score_kind is not None:
        rule = (
            ""
            if evaluation.threshold is None
            else f", and predict a class from probability {evaluation.threshold:g}"
        )
        told += (f"scores were taken as {evaluation.score_kind}{rule}",)
    told += () if evaluation.beside is None else evaluation.beside.notes()
    if evaluation.scores is not None and evaluation.scores.ranking_skipped is not None:
        told += (f"no AUC and average precision: {evaluation.scores.ranking_skipped}",)
    dropped = asdict(evaluation.dropped)
    left_out = [f"{count} {reason.replace('_', ' ')}" for reason, count in dropped.items() if count]
    if left_out:
        told += (f"samples left out: {', '.join(left_out)}",)
    return told


def shared_names(names: Mapping[int, str], num_classes: int) -> tuple[str, ...]:
    """Return the note on names of several classes; a class without a name goes by its number."""
    times = Counter(names.values()) if len(set(names.values())) < len(names) else {}
    shared: dict[str, list[int]] = {}
    for label, name in names.items():
        if times and times[name] > 1:
            shared.setdefault(name, []).append(label)
        is_number = re.fullmatch("0|[1-9][0-9]{0,8}", name) and int(name) < num_classes
        if is_number and int(name) not in names:
            shared.setdefault(name, [label]).append(int(name))
    if not shared:
        return ()
    name, (one, other, *_) = next(iter(shared.items()))
    several = f"{len(shared)} names stand" if len(shared) > 1 else "1 name stands"
    return (f"{several} for several classes ({name!r} for {one} and {other}): go by the label",)


def _classes(number: int) -> str:
    return "class has" if number == 1 else "classes have"


def _average(average: Average | None) -> dict[str, float] | None:
    return None if average is None else asdict(average)


def _topk(scores: ScoreMetrics | None) -> dict[str, float] | None:
    if scores is None or not scores.topk:
        return None
    return {str(k): share for k, share in scores.topk.items()}
