"""One pass over saved predictions: everything that `eval report` shows comes from here."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pttool.core.eval.measuring.counts import ConfusionCounter
from pttool.core.eval.measuring.metrics import (
    Macro,
    PerClass,
    Totals,
    most_confused,
    per_class,
    totals,
)
from pttool.core.eval.measuring.score_metrics import ScoreCounter, ScoreMetrics
from pttool.core.eval.types import Beside, Counts, Dropped, Predictions
from pttool.core.eval.writing.rows import ClassRow, Pair


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The counts of one run of a model, and what follows from them."""

    counts: Counts
    names: dict[int, str]
    classes: PerClass
    totals: Totals
    scores: ScoreMetrics | None
    score_kind: str | None
    dropped: Dropped
    is_multilabel: bool = False
    threshold: float | None = None
    beside: Beside | None = None

    def name(self, label: int) -> str:
        """Return the name of a class; without one, its number."""
        return self.names.get(label, str(label))


def evaluate(
    predictions: Predictions,
    *,
    macro: Macro = "seen",
    ignored: Collection[int] = (),
    topk: Sequence[int] = (1, 5),
    ece_bins: int = 15,
) -> Evaluation:
    """Read the predictions and return their evaluation. Raises as reading them does."""
    counter = ConfusionCounter(predictions.num_classes)
    scores: ScoreCounter | None = None
    for block in predictions.blocks:
        counter.add(block.label, block.prediction)
        if block.scores is not None:
            if scores is None:
                width = block.scores.shape[1]
                kind = predictions.score_kind or "logits"
                scores = ScoreCounter(width, kind, topk=topk, ece_bins=ece_bins)
            scores.add(block.label, block.scores)
    counts = counter.counts()
    classes = per_class(counts)
    return Evaluation(
        counts,
        predictions.names,
        classes,
        totals(counts, macro=macro, ignored=ignored, classes=classes),
        None if scores is None else scores.result(),
        predictions.score_kind,
        predictions.dropped,
        beside=predictions.beside,
    )


def total_row(evaluation: Evaluation) -> ClassRow:
    """Return the row All: the sum of the support, and the micro averages."""
    micro = evaluation.totals.micro
    return ClassRow("All", -1, evaluation.counts.n, micro.precision, micro.recall, micro.f1)


def pairs(evaluation: Evaluation, most: int) -> list[Pair]:
    """Return the most confused pairs, the largest first."""
    return [
        Pair(evaluation.name(label), evaluation.name(predicted), label, predicted, count)
        for label, predicted, count in most_confused(evaluation.counts, most)
    ]
