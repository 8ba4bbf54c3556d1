"""Gates for continuous integration: metrics that must not fall below a threshold."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import islice

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.trust.intervals import Interval
from pttool.errors import CheckFailedError, UsageError

CLASS_METRICS = ("precision", "recall", "f1", "iou", "auc", "ap")
# What `values` may hold, before anything is read.
TOTALS = (
    "accuracy", "balanced_accuracy", "kappa", "mcc", "mean_iou",
    *(f"{average}_{metric}"
      for average in ("micro", "macro", "weighted", "samples")
      for metric in ("precision", "recall", "f1")),
    "macro_auc", "macro_ap",
)  # fmt: skip
LOSSES = ("log_loss", "brier", "ece", "hamming_loss")
MOST_COMPARED = 20_000  # names that a misspelt one is held against


@dataclass(frozen=True, slots=True)
class Gate:
    """`metric` (of the class named `of`, if it is one of a class) is to be at least `threshold`."""

    text: str
    metric: str
    of: str | None
    threshold: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a gate. An undefined value is None, and fails.

    With `is_lower_end` the value is that of the metric's interval.
    """

    gate: str
    value: float | None
    threshold: float
    passed: bool
    is_lower_end: bool = False


def parse_gate(text: str, topk: Sequence[int] = ()) -> Gate:
    """Return the gate of `METRIC=VALUE` or `METRIC:CLASS=VALUE`.

    A metric may be spelt as its path in JSON: `macro.f1`, `topk.5`. Raises UsageError for anything
    else, and for a metric that no task has; `topk` are those of the top-k accuracies. Whether this
    task has the metric and the class is seen in `check`.
    """
    left, equals, right = text.rpartition("=")
    metric, colon, of = left.partition(":")
    try:
        threshold = float(right)
    except ValueError:
        threshold = float("nan")
    if not equals or not metric or not math.isfinite(threshold):
        raise UsageError(
            f"--fail-under {text!r}: is not METRIC=VALUE", "accuracy=0.9, recall:cat=0.8"
        )
    if metric in LOSSES:
        message = f"--fail-under {text}: {metric} is a loss, of which less is better"
        raise UsageError(message, "gates are lower bounds, as of accuracy, macro_f1 or macro_auc")
    spelt = re.sub(r"^topk[._]", "top", metric).replace(".", "_")
    gate = Gate(text, spelt, of if colon else None, threshold)
    if colon:
        _check_of_class(gate)
    else:
        _check_known(gate, (*TOTALS, *(f"top{k}" for k in topk)))
    return gate


def check(
    gates: Sequence[Gate], evaluation: Evaluation, intervals: Mapping[str, Interval] | None
) -> list[Outcome]:
    """Return the outcomes; with `intervals` the lower end of a metric's interval must reach it.

    Raises UsageError for an unknown metric or class, or a metric without an interval.
    """
    return [_outcome(gate, evaluation, intervals) for gate in gates]


def failure(outcomes: Sequence[Outcome]) -> CheckFailedError | None:
    """Return the error of the gates that failed, on one line."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if not failed:
        return None
    told = "; ".join(f"{outcome.gate}: {_told(outcome)}" for outcome in failed)
    return CheckFailedError(f"{len(failed)} of {len(outcomes)} gates failed: {told}")


def _told(outcome: Outcome) -> str:
    if outcome.value is None:
        return "is undefined"
    shown = f"{outcome.value:.6g}"
    if float(shown) >= outcome.threshold:
        shown = repr(outcome.value)
    return f"the lower end of its interval is {shown}" if outcome.is_lower_end else f"is {shown}"


def _outcome(
    gate: Gate, evaluation: Evaluation, intervals: Mapping[str, Interval] | None
) -> Outcome:
    value = _of_class(gate, evaluation) if gate.of is not None else _of_all(gate, evaluation)
    on_interval = intervals is not None and value is not None
    if intervals is not None and value is not None:
        if gate.of is not None or gate.metric not in intervals:
            known = ", ".join(intervals)
            raise UsageError(f"--fail-on-ci: {gate.text} has no interval", f"those have: {known}")
        value = intervals[gate.metric][0]
    passed = value is not None and value >= gate.threshold
    return Outcome(gate.text, value, gate.threshold, passed, on_interval)


def values(evaluation: Evaluation) -> dict[str, float | None]:
    """Return every metric that the task has of the whole by name; undefined ones are None."""
    totals, scores = evaluation.totals, evaluation.scores
    named: dict[str, float | None] = {
        name: getattr(totals, name)
        for name in ("accuracy", "balanced_accuracy", "kappa", "mcc", "mean_iou")
        if getattr(totals, name) is not None
    }
    for name in ("micro", "macro", "weighted", "samples"):
        average = getattr(totals, name)
        if average is not None:
            named |= {f"{name}_{metric}": value for metric, value in asdict(average).items()}
    named |= {name: None for name in totals.undefined if name in named}
    if scores is not None:
        ranking = scores.ranking
        named["macro_auc"] = None if ranking is None else ranking.macro_auc
        named["macro_ap"] = None if ranking is None else ranking.macro_ap
        named |= {f"top{k}": share for k, share in scores.topk.items()}
    return named


def _of_all(gate: Gate, evaluation: Evaluation) -> float | None:
    known = values(evaluation)
    _check_known(gate, known)
    return known[gate.metric]


def _check_known(gate: Gate, known: Iterable[str]) -> None:
    known = list(known)
    if gate.metric not in known:
        nearest = get_close_matches(gate.metric, known, 3, 0.0)
        if gate.metric in CLASS_METRICS:
            averages = [name for name in known if name.endswith(f"_{gate.metric}")]
            nearest = [*(averages or nearest), f"{gate.metric}:CLASS"]
        raise UsageError(
            f"--fail-under {gate.text}: no metric {gate.metric!r} of the whole",
            f"nearest: {', '.join(nearest)}",
        )


def _check_of_class(gate: Gate) -> None:
    if gate.metric not in CLASS_METRICS:
        raise UsageError(
            f"--fail-under {gate.text}: no metric {gate.metric!r} of a class",
            f"one of {', '.join(CLASS_METRICS)}",
        )


def _of_class(gate: Gate, evaluation: Evaluation) -> float | None:
    label = _label(gate, evaluation)
    if gate.metric in ("auc", "ap"):
        ranking = None if evaluation.scores is None else evaluation.scores.ranking
        column = None if ranking is None else getattr(ranking, gate.metric)
        return None if column is None else column[label]
    if gate.metric in evaluation.classes.undefined(label):
        return None
    return float(getattr(evaluation.classes, gate.metric)[label])


def _label(gate: Gate, evaluation: Evaluation) -> int:
    """Return the class of that name, else of that label. Raises UsageError for none or several."""
    of, every = str(gate.of), range(evaluation.counts.num_classes)
    named = [label for label in every if evaluation.name(label) == of]
    if len(named) > 1:
        raise UsageError(
            f"--fail-under {gate.text}: {of!r} names {len(named)} classes, "
            f"{named[0]} and {named[1]}{' among them' if named[2:] else ''}",
            f"give the label instead: {gate.metric}:{named[0]}",
        )
    if named:
        return named[0]
    if re.fullmatch("[0-9]{1,9}", of) and int(of) in every:
        return int(of)
    known = islice(map(evaluation.name, every), MOST_COMPARED)
    nearest = ", ".join(get_close_matches(of[:200], list(known), 3, 0.0))
    raise UsageError(f"--fail-under {gate.text}: no class {of!r}", f"nearest: {nearest}")
