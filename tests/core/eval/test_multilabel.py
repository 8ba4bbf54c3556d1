"""Several labels per sample: scikit-learn's values, every format, and what is refused."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import metrics

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.measuring.multilabel import SetCounter, SetRanking, evaluate_sets, set_totals
from pttool.core.eval.samples.label_sets import predicted
from pttool.core.eval.samples.predictions import open_predictions
from pttool.core.eval.types import Block, Flags, Floats, Predictions
from pttool.core.eval.verify import largest_difference
from pttool.errors import InputError, PttoolError, UsageError

LABEL = [[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]]
PREDICTION = [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 0, 0]]
LOGITS = [[2.0, -1.0, 0.0], [-3.0, 0.5, 4.0], [1.0, -0.25, -9.0], [-1.0, -1.0, -1.0]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(*names: str, **options: Any) -> Predictions:
    return open_predictions([Path(name) for name in names], task="multilabel", **options)


def read(predictions: Predictions) -> tuple[list[list[int]], list[list[int]]]:
    blocks = list(predictions.blocks)
    assert all(block.label.dtype == block.prediction.dtype == np.bool_ for block in blocks)
    label = np.concatenate([block.label for block in blocks]).astype(int).tolist()
    return label, np.concatenate([block.prediction for block in blocks]).astype(int).tolist()


def refusal(*names: str, **options: Any) -> PttoolError:
    with pytest.raises(PttoolError) as caught:
        read(opened(*names, **options))
    assert "\n" not in caught.value.message + (caught.value.hint or "")
    return caught.value


def npz(name: str = "preds.npz", **arrays: Any) -> str:
    np.savez(name, **arrays)
    return name


def save_npz() -> str:
    return npz(label=np.array(LABEL, bool), prediction=np.array(PREDICTION, np.float16))


def save_deflated() -> str:
    logits = np.asfortranarray(np.array(LOGITS, ">f4"))
    np.savez_compressed("deflated.npz", labels=np.array(LABEL, ">u2"), logits=logits)
    return "deflated.npz"


def save_jsonl() -> str:
    pairs = zip(LABEL, PREDICTION, strict=True)
    lines = [json.dumps({"y_true": y, "y_pred": list(map(bool, p))}) for y, p in pairs]
    Path("preds.jsonl").write_text("\n".join(lines))
    return "preds.jsonl"


def save_pt() -> str:
    torch.save({"target": torch.tensor(LABEL), "logits": torch.tensor(LOGITS)}, "preds.pt")
    return "preds.pt"


def save_parquet() -> str:
    arrow = pytest.importorskip("pyarrow")
    columns = arrow.table({"label": LABEL, "scores": LOGITS})
    pytest.importorskip("pyarrow.parquet").write_table(columns, "preds.parquet")
    return "preds.parquet"


@pytest.mark.parametrize("save", [save_npz, save_deflated, save_jsonl, save_pt, save_parquet])
@pytest.mark.parametrize("block_rows", [1, 3, 100])
def test_every_format_gives_the_same_samples(save: Callable[[], str], block_rows: int) -> None:
    """A logit of exactly 0 predicts its class."""
    assert read(opened(save(), block_rows=block_rows)) == (LABEL, PREDICTION)


def test_arrays_of_label_prediction_and_scores() -> None:
    for name, array in {"y": LABEL, "p": PREDICTION, "s": LOGITS}.items():
        np.save(f"{name}.npy", np.array(array))

    assert read(opened(true="y.npy", pred="p.npy")) == (LABEL, PREDICTION)
    assert read(opened(true="y.npy", scores="s.npy")) == (LABEL, PREDICTION)
    both = opened(true="y.npy", pred="y.npy", scores="s.npy")
    assert (both.score_kind, both.threshold) == ("logits", None)
    assert read(both) == (LABEL, LABEL)


def test_a_saved_prediction_is_used_beside_scores_unless_a_threshold_is_given() -> None:
    npz(label=LABEL, prediction=LABEL, logits=LOGITS)

    assert read(opened("preds.npz")) == (LABEL, LABEL)
    assert read(opened("preds.npz", scores="logits")) == (LABEL, PREDICTION)
    assert read(opened("preds.npz", threshold=0.5)) == (LABEL, PREDICTION)


def test_a_threshold_is_a_probability() -> None:
    probabilities = np.array([[0.0, 0.3, 0.5, 1.0]])
    assert predicted(probabilities, "probabilities", 0.3).tolist() == [[False, True, True, True]]
    assert predicted(probabilities.astype("f4"), "probabilities", 0.3).sum() == 3
    logits = np.array([[-800.0, np.log(0.3 / 0.7), 0.0, 800.0]])
    assert predicted(logits, "logits", 0.3).tolist() == [[False, True, True, True]]
    assert predicted(logits, "logits", 0.5).tolist() == [[False, False, True, True]]
    assert predicted(logits, "logits", 0.0).all()
    assert not predicted(logits, "logits", 1.0).any()


def test_what_probabilities_are() -> None:
    """They need not sum to 1; a first block within 0..1 says what all are."""
    assert opened(npz(label=LABEL, probs=np.full((4, 3), 0.9))).score_kind == "probabilities"
    npz("mixed.npz", label=LABEL[:2], probs=[[0.25, 0.75, 0.5], [1.0, 4.0, -1.0]])
    assert opened("mixed.npz").score_kind == "logits"
    assert "probs holds scores -1 to 4, where" in refusal("mixed.npz", block_rows=1).message


def test_shards_lose_their_duplicates() -> None:
    npz("part10.npz", label=LABEL, prediction=PREDICTION, index=[3, 0, 8, 9])
    npz("part2.npz", label=LABEL[1:2], prediction=PREDICTION[1:2], index=[0])
    predictions = opened("part10.npz", "part2.npz")

    label, _ = read(predictions)
    assert label == [LABEL[1], LABEL[0], LABEL[2], LABEL[3]]
    assert predictions.dropped.duplicates == 1

    npz("part2.npz", label=LABEL[:1], prediction=PREDICTION[1:2], index=[0])
    message = refusal("part2.npz", "part10.npz").message
    assert "'0' comes twice, with different labels or predictions" in message


def test_scores_that_are_not_finite() -> None:
    npz(label=LABEL[:2], logits=[[0, np.nan, 1], [0, 1, 2]])

    assert "logits holds nan, no finite score: once" in refusal("preds.npz").message
    dropped = opened("preds.npz", drop_nan=True)
    assert read(dropped)[0] == LABEL[1:2]
    assert dropped.dropped.not_finite == 1


@pytest.mark.parametrize(
    ("arrays", "options", "kind", "message"),
    [
        ({"label": [[0, 1], [2, 2], [1, 3]], "prediction": [[0, 1]] * 3}, {}, InputError,
         "label holds 2, neither 0 nor 1: 3 times, first in row 1 (from 0)"),
        ({"label": [[0, 1]], "prediction": [[0.5, 1]]}, {}, InputError, "prediction holds 0.5"),
        ({"label": [[0, np.nan]], "prediction": [[0, 1]]}, {}, InputError, "label holds nan"),
        ({"label": [0, 1], "prediction": [0, 1]}, {}, InputError,
         "label has shape (2,), where multilabel needs (samples, classes)"),
        ({"label": [[0, 1]], "prediction": [0]}, {}, InputError, "prediction has shape (1,)"),
        ({"label": [[[0, 1]]], "prediction": [[[0, 1]]]}, {}, InputError, "shape (1, 1, 2)"),
        ({"label": [[0, 1]], "prediction": [[0, 1, 1]]}, {}, InputError,
         "label has shape (1, 2), prediction has (1, 3)"),
        ({"label": [[0, 1]], "logits": [[0, 1, 1]]}, {}, InputError, "logits has (1, 3)"),
        ({"label": [[0, 1]], "prediction": [[0, 1]] * 2}, {}, InputError, "prediction has (2, 2)"),
        ({"label": np.zeros((0, 3)), "prediction": np.zeros((0, 3))}, {}, InputError,
         "holds no samples"),
        ({"label": np.zeros((3, 0)), "prediction": np.zeros((3, 0))}, {}, InputError, "(3, 0)"),
        ({"label": [["a", "b"]], "prediction": [[0, 1]]}, {}, InputError, "is text of shape"),
        ({"label": [[0, 1]], "prediction": [[0, 1]]}, {"num_classes": 3}, UsageError,
         "have 2 columns"),
        ({"label": [[0, 1]], "prediction": [[0, 1]]}, {"ignore_index": 0}, UsageError,
         "--ignore-index"),
        ({"label": [[0, 1]], "prediction": [[0, 1]]}, {"threshold": 0.5}, InputError, "no scores"),
        ({"label": [[0, 1]], "logits": [[0, 1]]}, {"threshold": 1.5}, UsageError,
         "is no probability"),
        ({"label": [[0, 1]], "logits": [[0, 1]]}, {"threshold": 0.5, "pred": "label"}, UsageError,
         "both --pred and --threshold"),
    ],
)  # fmt: skip
def test_what_is_refused(
    arrays: dict[str, Any], options: dict[str, Any], kind: type[PttoolError], message: str
) -> None:
    error = refusal(npz(**arrays), **options)

    assert message in error.message
    assert type(error) is kind


def test_shards_of_different_width_are_refused() -> None:
    npz("a.npz", label=[[0, 1]], prediction=[[0, 1]])
    npz("b.npz", label=[[0, 1, 1]], prediction=[[0, 1, 1]])
    npz("c.npz", label=[[0, 1]], prediction=[[0, 1]], logits=[[0, 1]])
    npz("d.npz", label=[[0, 1]], logits=[[0, 1]])

    assert "label has 3 columns, where 2 classes are expected" in refusal("a.npz", "b.npz").message
    assert "only one of them has scores" in refusal("a.npz", "c.npz").message
    assert "only one of them has pred" in refusal("c.npz", "d.npz").message


def test_lists_of_class_numbers_are_refused_with_a_hint() -> None:
    Path("ids.jsonl").write_text('{"label": [0, 2], "prediction": [1]}\n' * 2)
    rows = ({"label": [0], "prediction": [1]}, {"label": [], "prediction": [2]})
    Path("more.jsonl").write_text("\n".join(map(json.dumps, rows)))

    assert "label has shape (2, 2), prediction has (2, 1)" in refusal("ids.jsonl").message
    assert "not class numbers" in (refusal("more.jsonl").hint or "")


def test_without_the_task_arrays_of_0_and_1_ask_for_it() -> None:
    for name in (npz(label=LABEL, prediction=PREDICTION), save_jsonl(), save_pt()):
        with pytest.raises(UsageError) as caught:
            list(open_predictions([Path(name)]).blocks)
        assert "--task multilabel" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="--threshold"):
        open_predictions([Path("preds.npz")], threshold=0.5)


def test_a_table_worked_by_hand() -> None:
    found = _evaluated(np.array(LABEL, bool), np.array(PREDICTION, bool))
    assert found.counts.support.tolist() == [2, 2, 1]
    assert found.classes.precision.tolist() == [1.0, 1.0, 0.5]
    assert found.classes.recall.tolist() == [1.0, 0.5, 1.0]
    assert (found.totals.accuracy, found.totals.n) == (0.5, 4)
    assert found.totals.hamming_loss == pytest.approx(2 / 12)
    assert found.totals.micro.f1 == pytest.approx(0.8)
    assert (found.totals.kappa, found.totals.mcc) == (None, None)


def test_what_is_undefined_is_zero_and_named() -> None:
    nothing = np.zeros((3, 2), bool)
    found = _evaluated(nothing, nothing)
    assert (found.totals.accuracy, found.totals.micro.f1) == (1.0, 0.0)
    assert found.classes.undefined(0) == ["precision", "recall", "f1"]
    assert found.totals.undefined == ("mean_iou", "micro_precision", "micro_recall", "micro_f1")
    assert found.totals.macro_classes == 0


@pytest.mark.parametrize("memory", [10**9, 0], ids=["memory", "file"])
def test_random_tables_agree_with_scikit_learn(memory: int) -> None:
    """Absent classes, samples without labels, ties, a single class, blocks of several sizes."""
    rng = np.random.default_rng(memory % 7)
    for _ in range(200):
        size, n = int(rng.integers(1, 9)), int(rng.integers(1, 50))
        label = rng.random((n, size)) < rng.random(size)
        scores = np.round(rng.normal(0, 2, (n, size)) + label, int(rng.integers(0, 4)))
        prediction = predicted(scores, "logits", 0.5)
        counter, ranking = SetCounter(size), SetRanking(size, memory)
        for part in np.array_split(np.arange(n), 3):
            counter.add(label[part], prediction[part])
            ranking.add(label[part], scores[part])
        _compare_totals(counter, label, prediction)
        found, skipped = ranking.result()
        assert found is not None
        assert skipped is None
        for number in range(size):
            own, column = label[:, number], scores[:, number]
            auc = metrics.roc_auc_score(own, column) if own.any() and not own.all() else None
            ap = metrics.average_precision_score(own, column) if own.any() else None
            assert found.auc[number] == pytest.approx(auc, abs=1e-12)
            assert found.ap[number] == pytest.approx(ap, abs=1e-12)


def _compare_totals(counter: SetCounter, label: Flags, prediction: Flags) -> None:
    counts = counter.counts()
    found = set_totals(counts, counter.samples, macro="all")
    assert found.accuracy == pytest.approx(np.mean((label == prediction).all(1)), abs=1e-12)
    assert found.hamming_loss == pytest.approx(np.mean(label != prediction), abs=1e-12)
    # To scikit-learn a single column is one class per sample: a column of nothing keeps it apart.
    wide = [np.pad(sets, ((0, 0), (0, 1))) for sets in (label, prediction)]
    every = list(range(counts.num_classes))
    assert found.accuracy == pytest.approx(metrics.accuracy_score(*wide), abs=1e-12)
    loss = metrics.hamming_loss(*wide) * wide[0].shape[1] / len(every)
    assert found.hamming_loss == pytest.approx(loss, abs=1e-12)
    for average in ("micro", "macro", "weighted", "samples"):
        expected = metrics.precision_recall_fscore_support(
            *wide, labels=every, average=average, zero_division=0.0
        )
        ours = getattr(found, average)
        values = [ours.precision, ours.recall, ours.f1]
        np.testing.assert_allclose(values, expected[:3], rtol=0, atol=1e-12, err_msg=average)


def test_the_second_opinion_of_scikit_learn() -> None:
    rng = np.random.default_rng(4)
    label = rng.random((80, 5)) < 0.3
    for width in (1, 5):
        npz(label=label[:, :width], logits=rng.normal(size=(80, width)) + label[:, :width])
        name, difference = largest_difference(
            evaluate_sets(opened("preds.npz")), opened("preds.npz")
        )
        assert difference < 1e-12, name


def test_memory_does_not_grow_with_the_samples() -> None:
    """64 MB of labels and predictions."""

    def blocks() -> Iterator[Block]:
        rng = np.random.default_rng(0)
        for _ in range(64):
            yield Block(rng.random((1000, 500)) < 0.5, rng.random((1000, 500)) < 0.5)

    tracemalloc.start()
    found = evaluate_sets(Predictions(blocks(), 500, {}, is_multilabel=True))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.totals.n == 64_000
    assert peak < 30e6


def _evaluated(label: Flags, prediction: Flags, scores: Floats | None = None) -> Evaluation:
    block = Block(label, prediction, scores)
    return evaluate_sets(Predictions([block], label.shape[1], {}, is_multilabel=True))
