"""Several labels per sample: each class is counted for itself, and each sample too."""

from dataclasses import dataclass

import numpy as np

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.measuring.metrics import (
    Average,
    Macro,
    PerClass,
    Totals,
    average,
    mean,
    per_class,
    quotient,
    seen_and_averaged,
)
from pttool.core.eval.measuring.ranking import MEMORY, ColumnStore, Ranking, rank_sets
from pttool.core.eval.measuring.score_metrics import ScoreMetrics
from pttool.core.eval.types import Counts, Flags, Floats, Ints, Predictions

NONE = np.zeros(0, np.int64)


@dataclass(slots=True)
class SampleSums:
    """Sums over samples: how many there are, those right in every class, and their scores."""

    n: int = 0
    exact: int = 0
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0


class SetCounter:
    """The counts of label sets that come in blocks: of each class, and summed over samples."""

    def __init__(self, num_classes: int) -> None:
        self.samples = SampleSums()
        self._support, self._predicted, self._hits = (
            np.zeros(num_classes, np.int64) for _ in range(3)
        )

    def add(self, label: Flags, prediction: Flags) -> None:
        """Count samples: two arrays (n, C) of bool."""
        both = label & prediction
        self._support += np.count_nonzero(label, axis=0)
        self._predicted += np.count_nonzero(prediction, axis=0)
        self._hits += np.count_nonzero(both, axis=0)
        own, found, common = (np.count_nonzero(sets, axis=1) for sets in (label, prediction, both))
        samples = self.samples
        samples.n += len(label)
        samples.exact += int(((own == common) & (found == common)).sum())
        samples.precision += _sum_of_ratios(common, found)
        samples.recall += _sum_of_ratios(common, own)
        samples.f1 += _sum_of_ratios(2 * common, own + found)

    def counts(self) -> Counts:
        """Return the counts of each class."""
        return Counts(len(self._hits), self._support, self._predicted, self._hits, NONE, NONE, NONE)


class SetRanking:
    """AUC and average precision of classes, from label sets and scores that come in blocks.

    Memory: a byte per label and the scores, up to `memory` bytes; past that they go to temporary
    files (see `ColumnStore`).
    """

    def __init__(self, num_classes: int, memory: int = MEMORY) -> None:
        # As large as the labels, a byte each, are beside scores of four.
        self._labels = ColumnStore(num_classes, memory // 5)
        self._scores = ColumnStore(num_classes, memory - memory // 5)

    def add(self, label: Flags, scores: Floats) -> None:
        """Add samples: labels (n, C) of bool, finite scores (n, C)."""
        self._labels.add(label)
        self._scores.add(scores)

    def result(self) -> tuple[Ranking | None, str | None]:
        """Return the ranking, or None and the reason."""
        skipped = self._labels.skipped or self._scores.skipped
        if skipped is not None:
            return None, skipped
        ranking = rank_sets(self._labels, self._scores)
        self._labels.close()
        self._scores.close()
        return ranking, None


def evaluate_sets(predictions: Predictions, *, macro: Macro = "seen") -> Evaluation:
    """Read predictions of the task multilabel and return their evaluation.

    Raises as reading them does.
    """
    size = predictions.num_classes or 0
    counter = SetCounter(size)
    ranking: SetRanking | None = None
    for block in predictions.blocks:
        counter.add(block.label, block.prediction)
        if block.scores is not None:
            ranking = ranking or SetRanking(size)
            ranking.add(block.label, block.scores)
    counts, samples = counter.counts(), counter.samples
    classes = per_class(counts)
    return Evaluation(
        counts,
        predictions.names,
        classes,
        set_totals(counts, samples, macro=macro, classes=classes),
        None if ranking is None else _score_metrics(samples.n, predictions, ranking),
        predictions.score_kind,
        predictions.dropped,
        is_multilabel=True,
        threshold=predictions.threshold,
        beside=predictions.beside,
    )


def set_totals(
    counts: Counts, samples: SampleSums, *, macro: Macro = "seen", classes: PerClass | None = None
) -> Totals:
    """Return the totals of label sets: scikit-learn's of multilabel indicators.

    The accuracy is that of whole sets (`accuracy_score`), the Hamming loss the share of wrong
    cells. As with one class per sample, the macro average is over the classes that occur, or over
    all; the average over samples is scikit-learn's `average="samples"`.
    """
    classes = classes or per_class(counts)
    seen, averaged = seen_and_averaged(counts, macro)
    hits, support, predicted = (
        int(column.sum()) for column in (counts.hits, counts.support, counts.predicted)
    )
    values = {
        "accuracy": quotient(samples.exact, samples.n),
        "hamming_loss": quotient(support + predicted - 2 * hits, samples.n * counts.num_classes),
        "mean_iou": mean(classes.iou[averaged]),
    }
    micro = {
        "precision": quotient(hits, predicted),
        "recall": quotient(hits, support),
        "f1": quotient(2 * hits, support + predicted),
    }
    named = values | {f"micro_{name}": value for name, value in micro.items()}
    n = max(samples.n, 1)
    return Totals(
        n=samples.n,
        correct=samples.exact,
        num_classes=counts.num_classes,
        classes_seen=int(seen.sum()),
        balanced_accuracy=None,
        kappa=None,
        mcc=None,
        micro=Average(**{name: value or 0.0 for name, value in micro.items()}),
        macro=average(classes, averaged),
        macro_classes=int(averaged.sum()),
        weighted=average(classes, counts.support),
        samples=Average(samples.precision / n, samples.recall / n, samples.f1 / n),
        accuracy=values["accuracy"] or 0.0,
        hamming_loss=values["hamming_loss"] or 0.0,
        mean_iou=values["mean_iou"] or 0.0,
        undefined=tuple(name for name, value in named.items() if value is None),
    )


def _score_metrics(n: int, predictions: Predictions, ranking: SetRanking) -> ScoreMetrics:
    found, skipped = ranking.result()
    return ScoreMetrics(
        n=n,
        kind=predictions.score_kind or "logits",
        topk={},
        log_loss=None,
        brier=None,
        ece=None,
        ranking=found,
        ranking_skipped=skipped,
    )


def _sum_of_ratios(part: Ints, whole: Ints) -> float:
    """Return the sum over samples; 0/0 is 0."""
    return float((part / np.maximum(whole, 1)).sum())
