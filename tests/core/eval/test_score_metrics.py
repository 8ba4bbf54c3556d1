"""Metrics of scores: scikit-learn's values, netcal's calibration error, published figures."""

import errno
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import datasets, metrics
from sklearn.naive_bayes import GaussianNB

from pttool.core.eval.evaluate import evaluate
from pttool.core.eval.measuring import ranking
from pttool.core.eval.measuring.score_metrics import ScoreCounter, ScoreMetrics, label_ranks
from pttool.core.eval.samples.predictions import open_predictions
from pttool.core.eval.types import Ints
from pttool.core.eval.verify import largest_difference


def test_calibration_error_of_a_confidence_of_exactly_one() -> None:
    """Case 05: both in the last bin, closed on the right; 0.525 comes of an 11th bin."""
    scores = np.array([[0.05, 0.95], [0.0, 1.0]])
    assert _result([1, 0], scores, ece_bins=10).ece == pytest.approx(0.475, abs=1e-15)


def test_a_confidence_of_zero_is_in_the_first_bin() -> None:
    assert _result([0, 1], np.zeros((2, 2)), ece_bins=10).ece == 0.5


def test_score_columns_without_samples() -> None:
    """Case 08."""
    scores = [[0.7, 0.2, 0.1, 0], [0.3, 0.6, 0.1, 0], [0.2, 0.7, 0.05, 0.05], [0.1, 0.8, 0.1, 0]]
    found = _result([0, 1, 0, 1], np.array(scores), topk=(1, 2, 9))
    assert found.topk == {1: 0.75, 2: 1.0, 9: 1.0}
    assert found.ranking is not None
    assert found.ranking.auc == [0.75, 0.75, None, None]
    assert (found.ranking.macro_auc, found.ranking.classes) == (0.75, 2)
    assert found.ranking.ap[2:] == [None, None]


def test_equal_scores_go_to_the_lower_class() -> None:
    scores = np.array([[1, 1, 1], [1, 1, 1], [0, 2, 2], [2, 0, 2], [2, 1, 0]], np.float16)
    assert label_ranks(np.array([0, 2, 2, 2, 2]), scores).tolist() == [0, 2, 1, 1, 2]
    assert label_ranks(np.array([0, 0, 1, 0, 0]), scores).tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("memory", [10**9, 0], ids=["memory", "file"])
def test_random_scores_agree_with_scikit_learn(
    monkeypatch: pytest.MonkeyPatch, kind: str, memory: int
) -> None:
    """Absent classes, ties, few samples, blocks of several sizes, chunks and panels of a few."""
    rng = np.random.default_rng(memory % 7)
    for _ in range(125):
        size, n = int(rng.integers(2, 8)), int(rng.integers(1, 40))
        monkeypatch.setattr(ranking, "CHUNK", int(rng.integers(1, 2000)))
        monkeypatch.setattr(ranking, "PANEL", int(rng.integers(1, 2000)))
        monkeypatch.setattr(ranking, "PANEL_FROM_FILE", int(rng.integers(1, 2000)))
        label = rng.integers(0, rng.integers(1, size + 1), n)
        scores = np.round(rng.normal(0, 2, (n, size)), int(rng.integers(0, 4)))
        probabilities = _softmax(scores)
        shown = scores if kind == "logits" else probabilities
        found = _result(label, shown, kind, topk=(1, 2), memory=memory, blocks=3)
        _compare(found, label, shown, probabilities)


def test_types_may_change_from_block_to_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    label, scores = rng.integers(0, 3, 60), rng.normal(size=(60, 3)).astype(np.float16)
    expected = _result(label, scores.astype(np.float64), "logits")
    for memory in (10**9, 0):
        counter = ScoreCounter(3, "logits", memory=memory)
        for part, kind in zip(np.split(np.arange(60), 3), ("f2", "f4", "f8"), strict=True):
            counter.add(label[part], scores[part].astype(kind))
        found = counter.result()
        assert found.ranking == expected.ranking
        assert found.log_loss == pytest.approx(expected.log_loss, abs=1e-12)


def test_float32_probabilities_are_clipped_at_their_own_eps() -> None:
    for kind in (np.float16, np.float32, np.float64):
        scores = np.array([[1.0, 0.0], [0.0, 1.0]], kind)
        expected = metrics.log_loss([0, 0], scores, labels=[0, 1])
        assert _result([0, 0], scores).log_loss == pytest.approx(expected, rel=1e-3)
        eps = float(np.finfo(kind).eps)
        exact = -(np.log(eps) + np.log(1 - eps)) / 2
        assert _result([0, 0], scores).log_loss == pytest.approx(exact, abs=1e-12)


def test_extreme_logits_give_numbers_but_no_warning() -> None:
    """The log-loss is scikit-learn's of their softmax, which it clips."""
    largest = -np.log(np.finfo(np.float64).eps)
    found = _result([0, 1], np.array([[1e308, -1e308], [1e308, -1e308]]), "logits")
    assert (found.topk[1], found.ece) == (0.5, 0.5)
    assert found.log_loss == pytest.approx(largest / 2)
    assert _result([0], np.array([[-1e4, 1e4]]), "logits").log_loss == pytest.approx(largest)
    theirs = metrics.log_loss([0], np.array([[0.0, 1.0]]), labels=[0, 1])
    assert theirs == pytest.approx(largest)
    assert _result([0], np.array([[7.0]]), "logits").log_loss == pytest.approx(0.0, abs=1e-15)


def test_log_probabilities_have_the_loss_of_their_probabilities() -> None:
    """GaussianNB's differ by hundreds of nats: 4.810 as probabilities, clipped."""
    rng = np.random.default_rng(0)
    logs = rng.normal(scale=200.0, size=(300, 4))
    logs -= np.log(np.exp(logs - logs.max(1, keepdims=True)).sum(1, keepdims=True)) + logs.max(
        1, keepdims=True
    )
    label = rng.integers(0, 4, 300).tolist()
    expected = _result(label, np.exp(logs)).log_loss
    assert _result(label, logs, "logits").log_loss == pytest.approx(expected, abs=1e-9)
    assert metrics.log_loss(label, np.exp(logs)) == pytest.approx(expected, abs=1e-9)


def test_all_of_one_class_has_precision_but_no_auc() -> None:
    found = _result([0, 0], np.array([[0.7, 0.3], [0.6, 0.4]])).ranking
    assert found is not None
    assert (found.auc, found.ap) == ([None, None], [1.0, None])
    assert (found.macro_auc, found.macro_ap, found.classes) == (None, None, 0)


def test_no_samples_have_no_metrics() -> None:
    found = ScoreCounter(3, "logits").result()
    assert (found.n, found.log_loss, found.brier, found.ece, found.ranking) == (0, *[None] * 4)


def test_without_room_for_the_scores_the_ranking_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    found = _result([0, 1], np.eye(2), memory=0, blocks=2)
    assert found.ranking is None
    assert found.ranking_skipped is not None
    assert found.ranking_skipped.endswith("No space left on device")
    assert found.topk[1] == 1.0


def test_digits_by_naive_bayes() -> None:
    features, label = datasets.load_digits(return_X_y=True)
    scores = GaussianNB().fit(features[::2], label[::2]).predict_proba(features[1::2])
    found = _result(label[1::2], scores, topk=(1, 2))
    assert found.topk == {1: 700 / 898, 2: pytest.approx(0.9198218262806236, abs=1e-15)}
    assert found.log_loss == pytest.approx(4.810036783754909, abs=1e-12)
    assert found.ranking is not None
    assert found.ranking.macro_auc == pytest.approx(0.9627502536790835, abs=1e-12)
    _compare(found, label[1::2], scores, scores)


def test_breast_cancer_by_naive_bayes() -> None:
    features, label = datasets.load_breast_cancer(return_X_y=True)
    scores = GaussianNB().fit(features[::2], label[::2]).predict_proba(features[1::2])
    found = _result(label[1::2], scores).ranking
    assert found is not None
    assert found.auc[1] == pytest.approx(0.9858934169278997, abs=1e-12)


def _result(
    label: Any, scores: NDArray[Any], kind: str = "probabilities", blocks: int = 1, **options: Any
) -> ScoreMetrics:
    counter = ScoreCounter(scores.shape[1], kind, **options)
    for part in np.array_split(np.arange(len(scores)), blocks):
        counter.add(np.asarray(label)[part], scores[part])
    return counter.result()


def _compare(
    found: ScoreMetrics, label: Ints, shown: NDArray[Any], probabilities: NDArray[np.float64]
) -> None:
    size = shown.shape[1]
    every = np.arange(size)
    own = probabilities[np.arange(len(label)), label]
    loss = metrics.log_loss(label, probabilities, labels=every) if own.min() > 0 else found.log_loss
    assert found.log_loss == pytest.approx(loss, abs=1e-12)
    brier = np.mean(((probabilities - (label[:, None] == every)) ** 2).sum(1))
    assert found.brier == pytest.approx(brier, abs=1e-12)
    if size > 2:  # of two classes it takes a column
        brier = metrics.brier_score_loss(label, probabilities, labels=every, scale_by_half=False)
    assert found.brier == pytest.approx(brier, abs=1e-12)
    for k, value in found.topk.items():
        assert value == pytest.approx(_top_k(label, shown, k), abs=1e-12)
    prediction = shown.argmax(1)
    confidence = probabilities[np.arange(len(label)), prediction]
    assert found.ece == pytest.approx(_netcal_ece(confidence, prediction == label), abs=1e-12)
    assert found.ranking is not None
    _compare_classes(found.ranking.auc, label, shown, metrics.roc_auc_score, both=True)
    _compare_classes(found.ranking.ap, label, shown, metrics.average_precision_score, both=False)


def _top_k(label: Ints, scores: NDArray[Any], k: int) -> float:
    """scikit-learn gives ties to the higher class: seen in reverse, that is the lower one."""
    size = scores.shape[1]
    if k >= size:
        return 1.0
    if size == 2:  # it takes a column
        return float(np.mean(scores.argmax(1) == label))
    reverse, every = scores[:, ::-1], np.arange(size)
    return float(metrics.top_k_accuracy_score(size - 1 - label, reverse, k=k, labels=every))


def _compare_classes(
    found: list[float | None],
    label: Ints,
    scores: NDArray[Any],
    metric: Callable[..., float],
    both: bool,
) -> None:
    for number, value in enumerate(found):
        own = label == number
        defined = own.any() and not (both and own.all())
        expected = metric(own, scores[:, number]) if defined else None
        assert value == pytest.approx(expected, abs=1e-12)


def _netcal_ece(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 15) -> float:
    """netcal 1.4's: np.histogramdd of the confidences over np.linspace(0, 1, bins + 1)."""
    edges = np.linspace(0, 1, bins + 1)
    number, _ = np.histogramdd(confidence[:, None], [edges])
    total, _ = np.histogramdd(confidence[:, None], [edges], weights=confidence)
    hits, _ = np.histogramdd(confidence[:, None], [edges], weights=right)
    filled = number > 0
    gap = np.abs(hits[filled] - total[filled]) / number[filled]
    return float((gap * number[filled]).sum() / number.sum())


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


@pytest.mark.parametrize("name", ["log_loss", "brier"])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_verify_sees_a_wrong_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    scores = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.5, 0.25, 0.25]])
    arrays: Any = {"label": [0, 1, 2], kind: np.log(scores) if kind == "logits" else scores}
    np.savez("preds.npz", **arrays)
    found = evaluate(open_predictions([Path("preds.npz")]))
    assert largest_difference(found, open_predictions([Path("preds.npz")]))[1] < 1e-12
    assert found.scores is not None
    wrong: Any = {name: getattr(found.scores, name) + 0.25}
    found = replace(found, scores=replace(found.scores, **wrong))
    again = open_predictions([Path("preds.npz")])
    metric, difference = largest_difference(found, again)
    assert (metric, round(difference, 9)) == (name, 0.25)
