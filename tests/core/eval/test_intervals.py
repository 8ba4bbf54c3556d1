"""Intervals: published ones, scipy's tests, and the bootstrap of samples they stand for."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from pttool.core.eval.measuring.counts import from_arrays
from pttool.core.eval.measuring.metrics import totals
from pttool.core.eval.trust import resample
from pttool.core.eval.trust.intervals import (
    bootstrap,
    mcnemar,
    paired_bootstrap,
    resamples_drawn,
    wilson,
)
from pttool.core.eval.trust.poisson import Cells
from pttool.core.eval.types import Counts, Ints


def test_wilson_of_886_of_898() -> None:
    assert wilson(886, 898) == pytest.approx((0.976788700697, 0.992339510755), abs=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 7), (999, 10**6)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_wilson_agrees_with_scipy(hits: int, n: int, confidence: float) -> None:
    expected = binomtest(hits, n).proportion_ci(confidence, "wilson")
    assert wilson(hits, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_stays_within_0_and_1() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == 1.0


def test_mcnemar_of_10_and_2() -> None:
    assert mcnemar(10, 2) == mcnemar(2, 10) == 0.03857421875
    assert mcnemar(0, 0) == mcnemar(7, 7) == 1.0
    assert mcnemar(0, 1) == 1.0


@pytest.mark.parametrize(
    ("b", "c"),
    [(1, 9), (0, 30), (1500, 1700), (2047, 2050), (2100, 2300), (0, 5000), (3, 4500), (20, 4500),
     (49_000, 51_000), (499_500, 501_500)],
)  # fmt: skip
def test_mcnemar_agrees_with_scipy(b: int, c: int) -> None:
    assert mcnemar(b, c) == pytest.approx(binomtest(b, b + c).pvalue, rel=1e-9)


def test_mcnemar_of_huge_counts() -> None:
    b, c = 10**9, 10**9 + 10**5
    normal = math.erfc((c - b - 1) / math.sqrt(2 * (b + c)))
    assert mcnemar(b, c) == pytest.approx(normal, rel=1e-4)
    assert mcnemar(0, 10**9) == 0.0


def test_resampled_counts_stand_for_resampled_samples() -> None:
    """4000 resamples of either: the ends of the intervals agree to a fraction of their width."""
    label, prediction = _samples(4, 300)
    counts = from_arrays(label, prediction, 4)
    found = bootstrap(counts, resamples=4000, seed=1)
    generator = np.random.default_rng(2)
    rows = generator.integers(0, 300, (4000, 300))
    drawn = [totals(from_arrays(label[row], prediction[row], 4)) for row in rows]
    for name, value in {
        "accuracy": [total.accuracy for total in drawn],
        "balanced_accuracy": [total.balanced_accuracy for total in drawn],
        "kappa": [total.kappa for total in drawn],
        "mcc": [total.mcc for total in drawn],
        "macro_precision": [total.macro.precision for total in drawn],
        "macro_recall": [total.macro.recall for total in drawn],
        "macro_f1": [total.macro.f1 for total in drawn],
        "weighted_precision": [total.weighted.precision for total in drawn],
        "weighted_f1": [total.weighted.f1 for total in drawn],
    }.items():
        low, high = np.quantile(np.array(value, np.float64), [0.025, 0.975])
        assert found[name] == pytest.approx((low, high), abs=0.06 * (high - low)), name


@pytest.mark.parametrize("way", ["_ByCell", "_ByError", "_ByNormal"])
def test_every_way_to_draw_has_the_mean_and_covariance_of_the_samples(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    size, n = 12, 40_000
    counts = from_arrays(*_samples(size, n), num_classes=size)
    _force(monkeypatch, way)
    parts = list(resample.resample(counts, np.arange(size), 4000, np.random.default_rng(0)))
    drawn = np.concatenate([np.concatenate(part, axis=1) for part in parts])
    shares = np.concatenate([counts.hits, counts.support, counts.predicted]) / n
    scale = np.sqrt(n * shares * (1 - shares))
    assert np.abs((drawn.mean(0) - n * shares) / scale).max() < 0.08
    expected = n * (_joint(counts) / n - np.outer(shares, shares)) / np.outer(scale, scale)
    assert np.abs(np.cov(drawn.T) / np.outer(scale, scale) - expected).max() < 0.1
    assert (drawn[:, size : 2 * size].sum(1) == n).all()


def test_large_tables_are_drawn_by_the_normal_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = from_arrays(*_samples(100, 100_000), num_classes=100)
    exact = bootstrap(counts)
    _force(monkeypatch, "_ByNormal")
    for name, (low, high) in bootstrap(counts).items():
        assert exact[name] == pytest.approx((low, high), abs=0.12 * (high - low)), name


def test_tables_of_many_classes_are_drawn_as_poisson_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Classes that occur once or twice too, whose metrics are far from normal."""
    rng = np.random.default_rng(5)
    label = np.concatenate([rng.integers(0, 40, 20_000), rng.integers(0, 300, 600)])
    prediction = np.where(rng.random(len(label)) < 0.6, label, rng.permutation(label))
    counts = from_arrays(label, prediction, 300)
    exact = bootstrap(counts, resamples=2000)
    monkeypatch.setattr(resample, "_is_huge", lambda *_: True)
    monkeypatch.setattr(resample, "LARGE_PATIENCE_NS", 10**12)
    for name, (low, high) in bootstrap(counts, resamples=2000).items():
        assert exact[name] == pytest.approx((low, high), abs=0.12 * (high - low)), name


@pytest.mark.parametrize("mean", [1, 2, 30, 256, 257])
def test_poisson_counts_have_their_mean_and_variance(mean: int) -> None:
    cells = Cells.of(np.full(200_000, mean))
    drawn = cells.draw(np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(mean, abs=5 * math.sqrt(mean / 200_000))
    assert drawn.var() == pytest.approx(mean, rel=0.03)


def test_a_million_classes_get_fewer_resamples() -> None:
    ones = np.ones(10**6, np.int64)
    errors = np.arange(300_000)
    counts = Counts(10**6, ones, ones, ones, errors, errors + 1, ones[:300_000])
    assert resamples_drawn(counts) < 1000
    assert resamples_drawn(from_arrays(*_samples(5, 200), num_classes=5)) == 1000


def test_the_seed_decides() -> None:
    counts = from_arrays(*_samples(5, 200), num_classes=5)
    assert bootstrap(counts, seed=3) == bootstrap(counts, seed=3)
    assert bootstrap(counts, seed=3) != bootstrap(counts, seed=4)


def test_bootstrap_of_a_single_class_and_of_nothing() -> None:
    sure = bootstrap(from_arrays(np.zeros(5, np.int64), np.zeros(5, np.int64), 3))
    assert sure["accuracy"] == sure["macro_f1"] == (1.0, 1.0)
    assert sure["kappa"] == sure["mcc"] == (0.0, 0.0)
    assert bootstrap(from_arrays(np.zeros(0, np.int64), np.zeros(0, np.int64), 3)) == {}


def test_bootstrap_averages_the_classes_that_totals_does() -> None:
    counts = from_arrays(np.array([1, 1] * 50), np.array([0, 1] * 50), 4)
    left_out = bootstrap(counts, ignored=[0])["macro_recall"]
    all_four = bootstrap(counts, macro="all")["macro_recall"]
    for (low, high), middle in ((left_out, 0.5), (all_four, 0.125)):
        assert low < middle < high < 2 * middle


def test_paired_bootstrap_of_accuracies() -> None:
    low, high = paired_bootstrap(30, 50, 1000, resamples=20_000)
    deviation = math.sqrt((80 / 1000 - 0.02**2) / 1000)
    assert (low, high) == pytest.approx(
        (0.02 - 1.96 * deviation, 0.02 + 1.96 * deviation), abs=2e-3
    )
    assert paired_bootstrap(0, 0, 10) == paired_bootstrap(0, 0, 0) == (0.0, 0.0)


def _force(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    chosen = getattr(resample, way)
    make = getattr(chosen, "of", chosen)
    monkeypatch.setattr(resample, "_way", lambda errors, width, _resamples: make(errors, width))


def _samples(size: int, n: int) -> tuple[Ints, Ints]:
    """Labels of uneven support, half of them right, wrong ones more often in low classes."""
    rng = np.random.default_rng(size)
    label = rng.integers(0, size, n) * rng.integers(1, 3, n) // 2
    return label, np.where(rng.random(n) < 0.5, label, (size * rng.random(n) ** 2).astype(int))


def _joint(counts: Counts) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How many samples count in both of two margins (hits, support, predicted of each class)."""
    size = counts.num_classes
    matrix = np.diag(counts.hits).astype(np.float64)
    matrix[counts.error_label, counts.error_prediction] = counts.error_count
    hits, support, predicted = (
        np.diag(margin) for margin in (counts.hits, counts.support, counts.predicted)
    )
    joint = np.block(
        [[hits, hits, hits], [hits, support, matrix], [hits, matrix.T, predicted]]
    ).astype(np.float64)
    assert joint.shape == (3 * size, 3 * size)
    return joint
