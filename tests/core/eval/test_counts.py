"""Counting: every path gives scikit-learn's confusion matrix, and memory stays small."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from pttool.core.eval.measuring import counts as counting
from pttool.core.eval.measuring.counts import ConfusionCounter, from_arrays
from pttool.core.eval.types import Counts, Ints
from pttool.errors import InputError


def test_cells_and_margins_of_a_table_worked_by_hand() -> None:
    counts = from_arrays(
        np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2]), np.array([0, 0, 0, 1, 3, 1, 1, 0, 0, 1])
    )
    assert (counts.n, counts.num_classes) == (10, 4)
    assert counts.support.tolist() == [5, 3, 2, 0]
    assert counts.predicted.tolist() == [5, 4, 0, 1]
    assert counts.hits.tolist() == [3, 2, 0, 0]
    cells = zip(counts.error_label, counts.error_prediction, counts.error_count, strict=True)
    assert [tuple(map(int, cell)) for cell in cells] == [
        (0, 1, 1), (0, 3, 1), (1, 0, 1), (2, 0, 1), (2, 1, 1),
    ]  # fmt: skip


def test_keys_are_built_in_64_bits() -> None:
    counts = from_arrays(np.array([19], np.uint8), np.array([3], np.uint8), 20)
    assert (counts.error_label.tolist(), counts.error_prediction.tolist()) == ([19], [3])


@pytest.mark.filterwarnings("ignore:A single label was found")  # scikit-learn, where C = 1
@pytest.mark.parametrize("known", [True, False], ids=["classes known", "classes grow"])
@pytest.mark.parametrize("most_cells", [4_000_000, 400, 0], ids=["dense", "turning", "sparse"])
def test_blocks_on_every_path_give_scikit_learns_matrix(
    monkeypatch: pytest.MonkeyPatch, known: bool, most_cells: int
) -> None:
    monkeypatch.setattr(counting, "DENSE_CELLS", most_cells)
    monkeypatch.setattr(counting, "BLOCK", 100)
    rng = np.random.default_rng(5)
    for _ in range(30):
        size = int(rng.integers(1, 60))
        label, prediction = _samples(rng, size, 700)
        counter = ConfusionCounter(size if known else None)
        for part in np.array_split(np.arange(700), 9):
            counter.add(label[part], prediction[part])
        counts = counter.counts()
        expected = confusion_matrix(label, prediction, labels=np.arange(counts.num_classes))
        np.testing.assert_array_equal(_matrix(counts), expected)
        np.testing.assert_array_equal(counts.support, expected.sum(1))
        np.testing.assert_array_equal(counts.predicted, expected.sum(0))
        assert counts.num_classes == (size if known else max(label.max(), prediction.max()) + 1)
        assert all(getattr(counts, name).dtype == np.int64 for name in Counts.__slots__[1:])


def test_counts_can_be_read_between_blocks() -> None:
    counter = ConfusionCounter()
    assert counter.counts().num_classes == 0
    counter.add(np.array([0]), np.array([1]))
    assert counter.counts().error_count.tolist() == [1]
    counter.add(np.array([0, 5000]), np.array([1, 2]))
    assert counter.counts().error_count.tolist() == [2, 1]


def test_a_million_classes_stay_small() -> None:
    rng = np.random.default_rng(0)
    label, prediction = rng.integers(0, 10**6, (2, 200_000))
    tracemalloc.start()
    counts = from_arrays(label, prediction, 10**6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.n == 200_000
    assert peak < 100e6


@pytest.mark.parametrize(
    ("label", "prediction", "message"),
    [
        ([0, 3], [0, 1], "label 3 is outside 0..2"),
        ([0, 1], [-1, 1], "prediction -1 is outside 0..2"),
        ([0, 1], [0], "labels (2,), predictions (1,): two arrays of one length are needed"),
        ([0.0, 1.0], [0, 1], "classes of type float64: integers are needed"),
    ],
)
def test_what_is_no_class_is_refused(label: list[Any], prediction: list[Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        from_arrays(np.array(label), np.array(prediction), 3)
    assert error.value.message == message


def test_a_stray_label_does_not_take_all_memory() -> None:
    for stray in (np.array([10**12]), np.array([2**64 - 1], np.uint64)):
        with pytest.raises(InputError, match=r"is outside 0\.\.16777215"):
            from_arrays(stray, np.array([0]))


def _samples(rng: np.random.Generator, size: int, n: int) -> tuple[Ints, Ints]:
    label = rng.integers(0, size, n)
    return label, np.where(rng.random(n) < 0.5, label, rng.integers(0, size, n))


def _matrix(counts: Counts) -> NDArray[np.int64]:
    matrix = np.diag(counts.hits)
    matrix[counts.error_label, counts.error_prediction] = counts.error_count
    return matrix
