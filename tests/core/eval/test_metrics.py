"""Metrics of counts: scikit-learn's values, published ones, and those worked by hand."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn import datasets, metrics
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from pttool.core.eval.measuring import counts as counting
from pttool.core.eval.measuring.counts import from_arrays
from pttool.core.eval.measuring.metrics import confused, most_confused, per_class, totals
from pttool.core.eval.types import Ints

LABEL = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])
PREDICTION = np.array([0, 0, 0, 1, 3, 1, 1, 0, 0, 1])


def test_the_table_of_the_issue() -> None:
    counts = from_arrays(LABEL, PREDICTION, 4)
    classes, total = per_class(counts), totals(counts)
    assert classes.precision.tolist() == [0.6, 0.5, 0, 0]
    assert classes.recall.tolist() == pytest.approx([0.6, 2 / 3, 0, 0])
    assert classes.f1.tolist() == pytest.approx([0.6, 4 / 7, 0, 0])
    assert [classes.undefined(c) for c in range(4)] == [[], [], ["precision"], ["recall"]]
    assert total.accuracy == 0.5
    assert total.balanced_accuracy == pytest.approx(0.4222222222, abs=1e-10)
    assert total.kappa == pytest.approx(0.2063492063, abs=1e-10)
    assert total.mcc == pytest.approx(0.2167871374, abs=1e-10)
    assert _values(total.macro) == pytest.approx([0.275, 0.3166666667, 0.2928571429], abs=1e-10)
    assert _values(total.weighted) == pytest.approx([0.45, 0.5, 0.4714285714], abs=1e-10)
    assert _values(total.micro) == [0.5, 0.5, 0.5]
    assert (total.macro_classes, total.classes_seen, total.undefined) == (4, 4, ())


def test_confused_classes_read_the_row_or_the_column() -> None:
    counts = from_arrays(LABEL, PREDICTION, 4)
    rows = [[(1, 1), (3, 1)], [(0, 1)], [(0, 1), (1, 1)], []]
    assert list(confused(counts).each()) == rows
    assert list(confused(counts).each(labels=np.array([2, 0]))) == [rows[2], rows[0]]
    columns = [[(1, 1), (2, 1)], [(0, 1), (2, 1)], [], [(0, 1)]]
    assert list(confused(counts, "column").each()) == columns
    assert list(confused(counts).each(1)) == [[(1, 1)], [(0, 1)], [(0, 1)], []]
    assert most_confused(counts, 2) == [(0, 1, 1), (0, 3, 1)]


def test_a_class_is_not_confused_with_itself_nor_with_zeros() -> None:
    """Case 06."""
    counts = from_arrays(np.array([0, 0, 1, 1, 1]), np.zeros(5, np.int64), 2)
    assert list(confused(counts).each()) == [[], [(0, 3)]]


def test_confused_classes_with_numbers_too_large_for_one_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    counts = from_arrays(rng.integers(0, 30, 2000), rng.integers(0, 30, 2000), 30)
    for by in ("row", "column"):
        usual = list(confused(counts, by).each(30))
        with monkeypatch.context() as patch:
            patch.setattr("pttool.core.eval.measuring.metrics.MOST", 1)
            assert list(confused(counts, by).each(30)) == usual
    pairs = most_confused(counts, 1000)
    assert pairs == sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))


@pytest.mark.parametrize("num_classes", [3, 4, 5, 8])
def test_macro_is_not_diluted_by_classes_never_seen(num_classes: int) -> None:
    """Case 03."""
    counts = from_arrays(np.array([2, 1, 0, 0]), np.array([2, 1, 0, 1]), num_classes)
    assert totals(counts).macro.f1 == pytest.approx(0.777778, abs=1e-6)
    assert totals(counts).macro_classes == 3
    assert totals(counts, macro="all").macro.f1 == pytest.approx(7 / 3 / num_classes)
    assert totals(counts, macro="all").macro_classes == num_classes
    assert totals(counts).micro.f1 == 0.75


def test_an_ignored_class_is_not_averaged_in() -> None:
    """Case 12: the samples with label 0 were dropped; a prediction of 0 stays an error."""
    counts = from_arrays(np.array([1, 1]), np.array([0, 1]), 2)
    total = totals(counts, ignored=[0])
    assert (total.macro.recall, total.accuracy, total.n, total.macro_classes) == (0.5, 0.5, 2, 1)
    assert counts.predicted.tolist() == [1, 1]
    assert totals(counts, macro="all", ignored=[0, -100]).macro_classes == 1


def test_what_is_undefined_is_zero_and_named() -> None:
    one_class = totals(from_arrays(np.zeros(3, np.int64), np.zeros(3, np.int64)))
    assert (one_class.accuracy, one_class.kappa, one_class.mcc) == (1.0, 0.0, 0.0)
    assert one_class.undefined == ("kappa", "mcc")
    nothing = totals(from_arrays(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    assert (nothing.accuracy, nothing.macro_classes) == (0.0, 0)
    assert "accuracy" in nothing.undefined


def test_sums_beyond_64_bits_are_exact() -> None:
    counts = from_arrays(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    numbers = ("support", "predicted", "hits", "error_count")
    large = replace(counts, **{name: getattr(counts, name) * 2_000_000_000 for name in numbers})
    assert totals(large).mcc == pytest.approx(totals(counts).mcc, abs=1e-15)
    assert totals(large).kappa == totals(counts).kappa


@pytest.mark.parametrize("most_cells", [4_000_000, 0], ids=["dense", "sparse"])
def test_a_thousand_random_tables_agree_with_scikit_learn(
    monkeypatch: pytest.MonkeyPatch, most_cells: int
) -> None:
    monkeypatch.setattr(counting, "DENSE_CELLS", most_cells)
    rng = np.random.default_rng(most_cells)
    for _ in range(500):
        label, prediction, size = _random_table(rng)
        with sklearn.config_context(skip_parameter_validation=True):  # half of its time
            expected = _scikit_learn(label, prediction, size)
        found = _ours(label, prediction, size)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_")  # NearestCentroid on digits
@pytest.mark.parametrize(
    ("dataset", "classifier", "hits", "n"),
    [
        ("digits", KNeighborsClassifier(1), 886, 898),
        ("digits", NearestCentroid(), 807, 898),
        ("digits", GaussianNB(), 700, 898),
        ("iris", KNeighborsClassifier(1), 72, 75),
        ("wine", GaussianNB(), 83, 89),
        ("breast_cancer", GaussianNB(), 264, 284),
    ],
)
def test_real_data(dataset: str, classifier: Any, hits: int, n: int) -> None:
    """Even rows train, odd rows test."""
    features, label = getattr(datasets, f"load_{dataset}")(return_X_y=True)
    prediction = classifier.fit(features[::2], label[::2]).predict(features[1::2])
    counts = from_arrays(label[1::2], prediction)
    total = totals(counts)
    assert (int(counts.hits.sum()), counts.n) == (hits, n)
    if (dataset, hits) == ("digits", 886):
        assert total.accuracy == pytest.approx(0.9866369710467706, abs=1e-15)
        assert total.macro.f1 == pytest.approx(0.9865365078770145, abs=1e-12)
        assert total.kappa == pytest.approx(0.9851513594029678, abs=1e-12)
    if dataset == "iris":
        assert counts.hits.tolist() == [25, 24, 23]
        assert most_confused(counts, 5) == [(2, 1, 2), (1, 2, 1)]


def test_documented_examples() -> None:
    sklearns = totals(from_arrays(np.array([0, 1, 2, 2, 2]), np.array([0, 0, 2, 2, 1])))
    assert sklearns.macro.f1 == pytest.approx(0.4888888889, abs=1e-10)
    pycms = totals(
        from_arrays(
            np.array([2, 0, 2, 2, 0, 1, 1, 2, 2, 0, 1, 2]),
            np.array([0, 0, 2, 1, 0, 2, 1, 0, 2, 0, 2, 2]),
        )
    )
    assert pycms.kappa == pytest.approx(0.3548387097, abs=1e-10)
    assert pycms.mcc == pytest.approx(0.3666666667, abs=1e-10)


def _random_table(rng: np.random.Generator) -> tuple[Ints, Ints, int]:
    """Classes that are absent, or only predicted, or alone; skewed and all-right tables too."""
    size, n = int(rng.integers(1, 12)), int(rng.integers(1, 60))
    present = rng.choice(size, int(rng.integers(1, size + 1)), replace=False)
    label = rng.choice(present, n)
    return label, np.where(rng.random(n) < rng.random(), label, rng.integers(0, size, n)), size


def _ours(label: Ints, prediction: Ints, size: int) -> dict[str, Any]:
    counts = from_arrays(label, prediction, size)
    classes, total = per_class(counts), totals(counts)
    return {
        "accuracy": total.accuracy,
        "balanced_accuracy": total.balanced_accuracy,
        "kappa": total.kappa,
        "mcc": total.mcc,
        "classes": [classes.precision, classes.recall, classes.f1],
        "iou": classes.iou,
        "micro": _values(total.micro),
        "macro": _values(total.macro),
        "macro_all": _values(totals(counts, macro="all").macro),
        "weighted": _values(total.weighted),
        "mean_iou": total.mean_iou,
        "confused": np.array(_padded(list(confused(counts).each()))),
    }


def _scikit_learn(label: Ints, prediction: Ints, size: int) -> dict[str, Any]:
    every = np.arange(size)
    options: dict[str, Any] = {"zero_division": 0.0}

    def three(**more: Any) -> Any:
        found = metrics.precision_recall_fscore_support(label, prediction, **options, **more)
        return found[:3]

    with warnings.catch_warnings():  # of a single class, and of kappa without a value
        warnings.simplefilter("ignore")
        matrix = metrics.confusion_matrix(label, prediction, labels=every)
        kappa = metrics.cohen_kappa_score(label, prediction)
        balanced = metrics.balanced_accuracy_score(label, prediction)
        mcc = metrics.matthews_corrcoef(label, prediction)
    return {
        "accuracy": metrics.accuracy_score(label, prediction),
        "balanced_accuracy": balanced,
        "kappa": np.nan_to_num(kappa),
        "mcc": mcc,
        "classes": three(labels=every),
        "iou": metrics.jaccard_score(label, prediction, labels=every, average=None, **options),
        "micro": three(labels=every, average="micro"),
        "macro": three(average="macro"),
        "macro_all": three(labels=every, average="macro"),
        "weighted": three(average="weighted"),
        "mean_iou": metrics.jaccard_score(label, prediction, average="macro", **options),
        "confused": np.array(_padded([_largest(row, c) for c, row in enumerate(matrix)])),
    }


def _largest(row: Ints, own: int) -> list[tuple[int, int]]:
    pairs = [(c, int(count)) for c, count in enumerate(row) if c != own and count]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:5]


def _padded(lists: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    return [pairs + [(-1, 0)] * (5 - len(pairs)) for pairs in lists]


def _values(average: Any) -> list[float]:
    return [average.precision, average.recall, average.f1]
