"""Metrics of scores: top-k accuracy, log-loss, Brier, calibration error, AUC, average precision."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.measuring.ranking import MEMORY, ColumnStore, Ranking, rank
from pttool.core.eval.types import Floats, Ints

CELLS = 1 << 17  # scores worked on at a time: 1 MiB of float64 stays in the cache


@dataclass(frozen=True, slots=True)
class ScoreMetrics:
    """The metrics of `n` samples' scores; None where undefined or too large for a float.

    `log_loss` is in nats, the mean over samples, as scikit-learn's: probabilities (of logits, their
    softmax in float64) are clipped to eps..1-eps of their type. `brier` is the multiclass score:
    the squared differences summed over classes, the mean over samples (0 to 2; scikit-learn's
    `brier_score_loss` with `scale_by_half=False`). `ece` is netcal's: bins of equal width over
    [0, 1], closed on the left, the last on both sides.

    `ranking` is None where it was not asked for, or for the reason in `ranking_skipped`.
    """

    n: int
    kind: str
    topk: dict[int, float]
    log_loss: float | None
    brier: float | None
    ece: float | None
    ranking: Ranking | None
    ranking_skipped: str | None


class ScoreCounter:
    """The metrics of scores that come in blocks; `kind` is "logits" or "probabilities".

    Memory: the scores, up to `memory` bytes; past that they go to a temporary file (see
    `ColumnStore`).
    """

    def __init__(
        self,
        num_classes: int,
        kind: str,
        *,
        topk: Sequence[int] = (1, 5),
        ece_bins: int = 15,
        memory: int = MEMORY,
    ) -> None:
        self._num_classes = num_classes
        self._kind = kind
        self._topk = tuple(topk)
        self._columns = ColumnStore(num_classes, memory)
        self._labels: list[NDArray[np.int32]] = []
        self._n = 0
        self._rank_counts = np.zeros(num_classes, np.int64)
        self._log_loss = 0.0
        self._brier = 0.0
        self._edges = np.linspace(0.0, 1.0, ece_bins + 1)
        self._confidence = np.zeros(ece_bins)
        self._right = np.zeros(ece_bins)

    def add(self, label: Ints, scores: NDArray[Any]) -> None:
        """Add samples: labels (n,) in 0..C-1, finite scores (n, C) of float16, 32 or 64."""
        rows = max(1, CELLS // self._num_classes)
        for start in range(0, len(label), rows):
            part = slice(start, start + rows)
            self._add(label[part], scores[part])
        self._columns.add(scores)
        self._labels.append(label.astype(np.int32))
        self._n += len(label)

    def result(self) -> ScoreMetrics:
        """Return the metrics of what was added; the counter takes no more afterwards."""
        n = max(self._n, 1)
        within = np.cumsum(self._rank_counts)
        gap = float(np.abs(self._right - self._confidence).sum())
        ranking, skipped = self._ranking()
        return ScoreMetrics(
            n=self._n,
            kind=self._kind,
            topk={k: int(within[min(k, self._num_classes) - 1]) / n for k in self._topk},
            log_loss=self._mean(self._log_loss),
            brier=self._mean(self._brier),
            ece=self._mean(gap),
            ranking=ranking,
            ranking_skipped=skipped,
        )

    def _mean(self, total: float) -> float | None:
        return total / self._n if self._n and np.isfinite(total) else None

    def _ranking(self) -> tuple[Ranking | None, str | None]:
        if not self._n:
            return None, None
        if self._columns.skipped is not None:
            return None, self._columns.skipped
        ranking = rank(np.concatenate(self._labels), self._columns)
        self._columns.close()
        return ranking, None

    def _add(self, label: Ints, scores: NDArray[Any]) -> None:
        ranks = label_ranks(label, scores)
        self._rank_counts += np.bincount(ranks, minlength=self._num_classes)
        if self._kind == "logits":
            own, confidence, squares, loss = _of_logits(label, scores)
        else:
            own, confidence, squares, loss = _of_probabilities(label, scores)
        self._log_loss += float(loss.sum())
        # The sum of squares, with (1 - p)^2 in place of the label's own p^2.
        self._brier += float((squares - own * own + (1.0 - own) ** 2).sum())
        bins = np.searchsorted(self._edges, confidence, "right") - 1
        bins = np.clip(bins, 0, len(self._right) - 1)
        self._confidence += np.bincount(bins, confidence, len(self._right))
        self._right += np.bincount(bins, ranks == 0, len(self._right))


def label_ranks(label: Ints, scores: NDArray[Any]) -> Ints:
    """Return how many classes come before each sample's label: labels (n,), scores (n, C).

    Before it come the higher scores, and among equals the lower classes: rank 0 is the prediction,
    rank below k a hit in the top k. (scikit-learn's top-k takes the higher class among equals.)
    """
    if scores.dtype == np.float16:
        scores = scores.astype(np.float32)  # numpy compares halves one by one
    own = scores[np.arange(len(label)), label][:, None]
    ranks = _count(scores > own)
    tied = np.flatnonzero(_count(scores == own) > 1)
    if len(tied):
        lower = np.arange(scores.shape[1]) < label[tied, None]
        ranks[tied] += _count((scores[tied] == own[tied]) & lower)
    return ranks


def _count(flags: NDArray[np.bool_]) -> Ints:
    return np.asarray(np.count_nonzero(flags, axis=1), np.int64)


# Of both kinds: the probability of the label, the largest one, the sum of squares, and the loss.
_Parts = tuple[Floats, Floats, Floats, Floats]


def _of_logits(label: Ints, scores: NDArray[Any]) -> _Parts:
    shifted = scores.astype(np.float64)
    with np.errstate(over="ignore"):  # 1e308 - -1e308: the probability is 0
        shifted -= shifted.max(1, keepdims=True)
    own = shifted[np.arange(len(label)), label]
    np.exp(shifted, out=shifted)
    total = shifted.sum(1)
    squares = np.einsum("ij,ij->i", shifted, shifted) / (total * total)
    eps = float(np.finfo(np.float64).eps)
    loss = np.clip(np.log(total) - own, -math.log1p(-eps), -math.log(eps))
    return np.exp(own) / total, 1.0 / total, squares, loss


def _of_probabilities(label: Ints, scores: NDArray[Any]) -> _Parts:
    # scikit-learn's log_loss clips at the eps of the type as stored, and does not renormalise.
    kind = scores.dtype if scores.dtype.kind == "f" else np.dtype(np.float64)
    eps = float(np.finfo(kind).eps)
    values = scores.astype(np.float64)
    own = values[np.arange(len(label)), label]
    squares = np.einsum("ij,ij->i", values, values)
    return own, values.max(1), squares, -np.log(np.clip(own, eps, 1.0 - eps))
