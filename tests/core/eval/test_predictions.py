"""Saved predictions: what is read, what is refused, and with which words."""

import errno
import io
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pttool.core.eval.reading.recognition import open_table
from pttool.core.eval.reading.sources import Source
from pttool.core.eval.samples.predictions import open_predictions
from pttool.core.eval.types import Predictions
from pttool.errors import InputError, PttoolError, UnavailableError, UsageError

LABEL = [0, 2, 1, 1]
PREDICTION = [0, 1, 1, 2]
LOGITS = [[3.0, 1.0, 2.0], [0.0, 9.0, 9.0], [-1.0, 5.0, 2.0], [0.0, 0.5, 7.0]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(predictions: Predictions) -> tuple[list[int], list[int]]:
    blocks = list(predictions.blocks)
    label = [number for block in blocks for number in block.label.tolist()]
    return label, [number for block in blocks for number in block.prediction.tolist()]


def opened(*names: str, **options: Any) -> Predictions:
    return open_predictions([Path(name) for name in names], **options)


def refusal(*names: str, **options: Any) -> PttoolError:
    with pytest.raises(PttoolError) as caught:
        read(opened(*names, **options))
    assert "\n" not in caught.value.message + (caught.value.hint or "")
    return caught.value


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def npz(name: str = "preds.npz", **arrays: Any) -> str:
    np.savez(name, **arrays)
    return name


def save_csv() -> str:
    rows = "".join(f"{y},{p}\n" for y, p in zip(LABEL, PREDICTION, strict=True))
    return write("preds.csv", f"\ufefflabel,prediction\n{rows}\n")


def save_jsonl() -> str:
    pairs = zip(LABEL, PREDICTION, strict=True)
    lines = [json.dumps({"y_true": y, "y_pred": p, "note": None}) for y, p in pairs]
    return write("preds.jsonl", "\n".join(lines))


def save_tsv() -> str:
    rows = "".join(f"{p}.0\t{y}\n" for y, p in zip(LABEL, PREDICTION, strict=True))
    return write("preds.tsv", f"preds\ttargets\n{rows}")


def save_deflated() -> str:
    np.savez_compressed("deflated.npz", labels=np.array(LABEL, ">u2"), preds=np.array(PREDICTION))
    return "deflated.npz"


def save_pt() -> str:
    torch.save({"target": torch.tensor(LABEL), "logits": torch.tensor(LOGITS)}, "preds.pt")
    return "preds.pt"


def save_logits() -> str:
    return npz("logits.npz", label=LABEL, logits=np.asarray(LOGITS, "f2"))


def save_columns_first() -> str:
    logits = np.asfortranarray(np.asarray(LOGITS, ">f4"))
    np.savez_compressed("fortran.npz", label=np.array(LABEL), scores=logits)
    return "fortran.npz"


def save_parquet() -> str:
    arrow = pytest.importorskip("pyarrow")
    columns = arrow.table({"references": LABEL, "predictions": PREDICTION})
    pytest.importorskip("pyarrow.parquet").write_table(columns, "preds.parquet")
    return "preds.parquet"


def save_parquet_scores() -> str:
    arrow = pytest.importorskip("pyarrow")
    columns = arrow.table({"label": LABEL, "scores": LOGITS})
    pytest.importorskip("pyarrow.parquet").write_table(columns, "scores.parquet")
    return "scores.parquet"


def save_npz() -> str:
    return npz(label=LABEL, prediction=PREDICTION, unread=np.array([{}], dtype=object))


SAVES = [save_npz, save_deflated, save_csv, save_tsv, save_jsonl, save_pt, save_logits]
SAVES += [save_columns_first, save_parquet, save_parquet_scores]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("block_rows", [1, 3, 100])
def test_every_format_gives_the_same_samples(save: Callable[[], str], block_rows: int) -> None:
    label, prediction = read(opened(save(), block_rows=block_rows))

    assert label == LABEL
    assert prediction == PREDICTION  # row 1 of the logits is a tie: the lower class


@pytest.mark.parametrize("save", [save_npz, save_csv, save_tsv, save_jsonl])
def test_stdin_is_told_by_its_content(
    save: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path(save()).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    assert read(open_predictions(["-"])) == (LABEL, PREDICTION)


@pytest.mark.parametrize("dtype", ["f2", ">f8", "f4", "i1", ">i8", "u8", "U3", "S1"])
def test_every_type_of_label(dtype: str) -> None:
    npz(label=np.array([0, 1]).astype(dtype), prediction=np.array([[1], [1]]).astype(dtype))

    assert read(opened("preds.npz")) == ([0, 1], [1, 1])


def test_a_pair_of_npy_files() -> None:
    np.save("y.npy", np.array(LABEL))
    np.save("p.npy", np.array([*PREDICTION, 0]))
    np.save("s.npy", np.array(LOGITS))

    assert read(open_predictions([], true="y.npy", scores="s.npy")) == (LABEL, PREDICTION)
    with pytest.raises(InputError, match=r"y.npy has shape \(4,\), p.npy has \(5,\)"):
        open_predictions([], true="y.npy", pred="p.npy")
    assert "--true Y.npy --pred P.npy" in (refusal("y.npy").hint or "")


def test_names_are_numbered_in_sorted_order_over_all_shards() -> None:
    write("a.csv", "label,prediction\ndog,cat\n")
    write("b.csv", "label,prediction\nant,dog\n")

    predictions = opened("a.csv", "b.csv")

    assert predictions.names == {0: "ant", 1: "cat", 2: "dog"}
    assert predictions.num_classes == 3
    assert read(predictions) == ([2, 0], [1, 2])


def test_a_classes_file_gives_names_their_numbers() -> None:
    write("names.json", '{"dog": 7, "cat": 3}')
    write("a.csv", "label,prediction\ndog,cat\n")
    write("b.csv", "label,prediction\ndog,cow\ndog,cow\n")

    assert read(opened("a.csv", classes=Path("names.json"))) == ([7], [3])
    error = refusal("b.csv", classes=Path("names.json"))
    assert error.message == (
        "b.csv: prediction holds 'cow', which names no class: 2 times, first in row 0 (from 0)"
    )


def test_names_that_look_like_numbers_are_never_guessed() -> None:
    write("names.json", '["1", "0", "2"]')
    write("a.csv", "label,prediction\n2,2\n1,2\n")

    error = refusal("a.csv", classes=Path("names.json"))

    assert "label holds '1', the name of class 0, which looks like the number" in error.message
    assert read(opened(npz(label=[1], prediction=[0]), classes=Path("names.json"))) == ([1], [0])


def test_names_after_numbers_are_refused() -> None:
    write("a.csv", "label,prediction\n2,2\n1,2\nlabel,prediction\n")

    error = refusal("a.csv", block_rows=2)

    assert "label holds 'label', where the file begins with numbers: once" in error.message


def test_shards_come_in_natural_order_without_their_duplicates() -> None:
    npz("part10.npz", label=[4, 0], prediction=[4, 0], idx=[9, 1])
    npz("part2.npz", label=[0, 1, 0], prediction=[0, 2, 0], idx=[1, 5, 1])

    predictions = opened("part10.npz", "part2.npz")

    assert read(predictions) == ([0, 1, 4], [0, 2, 4])
    assert predictions.dropped.duplicates == 2


@pytest.mark.parametrize("ids", [[4, 4], ["a", "a"]])
@pytest.mark.parametrize("block_rows", [1, 2])
def test_an_index_with_two_answers_is_a_conflict(ids: list[Any], block_rows: int) -> None:
    npz(label=[1, 1], prediction=[0, 1], index=ids)

    error = refusal("preds.npz", block_rows=block_rows)

    assert "comes twice, with label 1 and prediction 0, then with 1 and 1" in error.message
    assert isinstance(error, InputError)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(1, 9))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_index_is_kept_once(index: list[int], block_rows: int) -> None:
    npz(label=index, prediction=index, index=index)

    assert read(opened("preds.npz", block_rows=block_rows))[0] == list(dict.fromkeys(index))


def test_what_probabilities_are() -> None:
    npz("probs.npz", label=[0, 1], probs=[[0.25, 0.75], [1.0, 0.0]])
    npz("mixed.npz", label=[0, 1], probs=[[0.25, 0.75], [1.0, 4.0]])

    assert opened("probs.npz").score_kind == "probabilities"
    assert opened("mixed.npz").score_kind == "logits"
    assert opened(save_logits()).score_kind == "logits"
    assert "scores 1 to 4 with sum 5" in refusal("mixed.npz", block_rows=1).message


def test_scores_that_are_not_finite() -> None:
    scores = np.array([[0.5, 0.5], [np.nan, 1.0], [0.0, np.inf], [0.25, 0.75]])
    npz(label=[0, 1, 1, 1], probs=scores)

    error = refusal("preds.npz", block_rows=1)
    assert "probs holds nan, no finite score: 2 times, first in row 1 (from 0)" in error.message
    dropped = opened("preds.npz", drop_nan=True)
    assert read(dropped) == ([0, 1], [0, 1])
    assert dropped.dropped.not_finite == 2
    assert read(opened("preds.npz", ignore_index=1))[0] == [0]


def test_case_12_ignores_by_label_only() -> None:
    scores = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    npz(label=[0, 0, 1, 1], probs=scores)

    predictions = opened("preds.npz", ignore_index=0)

    assert read(predictions) == ([1, 1], [0, 1])
    assert predictions.dropped.ignored == 2
    assert predictions.num_classes == 2


def test_case_02_names_follow_the_label() -> None:
    npz(label=[0, 2], prediction=[0, 2])

    predictions = opened("preds.npz", classes=Path(write("names.txt", "a\nb\nc\n")))

    assert predictions.names == {0: "a", 1: "b", 2: "c"}
    assert read(predictions) == ([0, 2], [0, 2])


class Malice:
    """What runs a command as soon as it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("pwned"),)


def test_case_09_nothing_is_unpickled() -> None:
    np.savez("a.npz", label=np.array([Malice()], dtype=object), prediction=np.array([0]))
    torch.save({"label": torch.tensor([0]), "note": Malice()}, "a.pt")
    Path("b.npz").write_bytes(pickle.dumps({"label": Malice()}))

    assert "a.npz: label: is an object array, which is refused" in refusal("a.npz").message
    assert "a.pt: holds more than tensors" in refusal("a.pt").message
    assert "b.npz: is a pickle, which is refused" in refusal("b.npz").message
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    ("arrays", "options", "kind", "message"),
    [
        ({"label": [0, 9, 9], "prediction": [0] * 3}, {"num_classes": 4}, InputError,
         "label holds 9, outside 0..3: 2 times, first in row 1 (from 0)"),
        ({"label": [0, -1], "prediction": [0, 0]}, {}, InputError, "label holds -1, outside 0.."),
        ({"label": [0, 1.5], "prediction": [0, 0]}, {}, InputError,
         "label holds 1.5, which is no class number: once, first in row 1"),
        ({"label": [0, 1], "prediction": [0, np.nan]}, {}, InputError, "prediction holds nan"),
        ({"label": [0, 1], "prediction": [0]}, {}, InputError,
         "label has shape (2,), prediction has (1,)"),
        ({"label": [], "prediction": []}, {}, InputError, "holds no samples"),
        ({"a": [0], "b": [0]}, {}, InputError,
         "has no labels and no predictions by a usual name among 'a', 'b'"),
        ({"label": [0], "prediction": [0]}, {"true": "y"}, InputError, "has no 'y'"),
        ({"label": [0], "prediction": [0]}, {"ignore_index": 0}, InputError, "no samples are left"),
        ({"label": [0], "prediction": [0], "y_true": [0], "y_pred": [0]}, {}, UsageError,
         "holds label/prediction and y_true/y_pred"),
        ({"label": [0], "logits": [[1, 2]], "probs": [[1, 0]]}, {}, UsageError, "logits and probs"),
        ({"label": np.eye(3), "prediction": np.eye(3)}, {}, UsageError, "label has shape (3, 3)"),
        ({"label": [0, 1], "prediction": np.eye(2)}, {}, InputError, "prediction has shape (2, 2)"),
        ({"label": [0], "scores": [0.5]}, {}, InputError, "scores has shape (1,)"),
        ({"label": [0], "scores": [[0.5, 1]]}, {"num_classes": 3}, UsageError, "have 2 columns"),
        ({"label": [1j], "prediction": [0]}, {}, InputError, "label: is of dtype '<c16'"),
        ({"label": ["a"], "prediction": [0]}, {}, InputError, "have names, others numbers"),
        ({"label": [2**63], "prediction": [0]}, {}, InputError, "label holds 9223372036854775808"),
    ],
)  # fmt: skip
def test_what_is_refused(
    arrays: dict[str, Any], options: dict[str, Any], kind: type[PttoolError], message: str
) -> None:
    error = refusal(npz(**arrays), **options)

    assert message in error.message
    assert type(error) is kind


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "label,prediction\n0,1\n0\n", "line 3 has 1 cells, the header 2"),
        ("a.csv", "label,prediction\n0,1\n0,cat\n", "label holds '0', where others are names"),
        ("a.csv", "label,label,prediction\n0,1,1\n", "has 2 columns 'label'"),
        ("a.csv", 'label,prediction\n0,"1\n', "is no valid CSV"),
        ("a.jsonl", '{"label": 1, "prediction": 0}\n{"label": 1}\n', "line 2 has no 'prediction'"),
        ("a.jsonl", '{"label": null, "prediction": 0}', "holds values of type NoneType"),
        ("a.jsonl", '{"label": 1, "scores": [1, 2]}\n{"label": 1, "scores": [1]}', "of different"),
        ("a.jsonl", "[1, 2]", "line 1 is no JSON object"),
        ("a.npz", "PK\x03\x04 and no more", "is a damaged or cut zip"),
        ("a.npz", "label,prediction\n0,1\n", "is not a zip as np.savez writes"),
    ],
)
def test_text_that_is_refused(name: str, text: str, message: str) -> None:
    assert message in refusal(write(name, text)).message


def test_files_that_are_refused() -> None:
    assert "is a folder" in refusal(".").message
    assert "nope.npz: No such file" in refusal("nope.npz").message
    assert "is empty" in refusal(write("empty.npz", "")).message
    Path("cut.npz").write_bytes(Path(save_npz()).read_bytes()[:-30])
    assert "cut.npz: is a damaged or cut zip" in refusal("cut.npz").message


def test_a_header_that_claims_more_than_there_is() -> None:
    np.save("y.npy", np.zeros(4, np.int64))
    Path("y.npy").write_bytes(Path("y.npy").read_bytes().replace(b"(4,), }    ", b"(400000,), }"))

    with pytest.raises(InputError, match="claims shape"):
        list(open_predictions([], true="y.npy", pred="y.npy").blocks)


def test_parquet_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert isinstance(refusal("a.parquet"), UnavailableError)


def _fed(name: str, content: bytes) -> str:
    """Make a named pipe that gives this content once."""
    os.mkfifo(name)
    threading.Thread(target=Path(name).write_bytes, args=(content,), daemon=True).start()
    return name


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
def test_a_named_pipe_is_read_once(save: Callable[[], str]) -> None:
    """`pttool eval report <(cat preds.npz)`: told by its content, where the name says nothing."""
    name = save()
    suffix = Path(name).suffix
    pipe = f"pipe{suffix}" if suffix in (".tsv", ".pt") else "pipe"
    assert read(opened(_fed(pipe, Path(name).read_bytes()))) == (LABEL, PREDICTION)


def test_arrays_come_from_pipes_too() -> None:
    np.save("y.npy", LABEL)
    np.save("p.npy", PREDICTION)
    y, p = (_fed(f"{name}.pipe", Path(f"{name}.npy").read_bytes()) for name in "yp")
    assert read(open_predictions([], true=y, pred=p)) == (LABEL, PREDICTION)
    assert "empty: is empty" in refusal(_fed("empty", b"")).message
    assert "is a device" in refusal("/dev/zero").message


@pytest.mark.parametrize(
    ("arrays", "message", "hint"),
    [
        ({"label": [0], "y_pred": [0]}, "'label' and 'y_pred' are no usual pair",
         "--true label --pred y_pred"),
        ({"label": [0], "other": [0]}, "has 'label', but no prediction and no", "--pred KEY"),
        ({"label": [0]}, "no prediction and no scores beside it", "--scores KEY"),
        ({"y_pred": [0], "other": [0]}, "has 'y_pred', but no labels", "--true KEY"),
    ],
)  # fmt: skip
def test_half_a_pair_is_told_what_is_missing(
    arrays: dict[str, Any], message: str, hint: str
) -> None:
    error = refusal(npz(**arrays))
    assert message in error.message
    assert hint in (error.hint or "")


def test_a_prediction_beside_scores_is_compared_with_them() -> None:
    npz(label=LABEL, prediction=[0, 1, 1, 0], logits=LOGITS)
    predictions = opened("preds.npz")
    assert read(predictions) == (LABEL, PREDICTION)
    assert predictions.beside is not None
    assert predictions.beside.notes() == (
        "logits and prediction disagree on 1 of 4 samples: "
        "logits was used (--pred prediction for prediction)",
    )
    agreeing = opened(npz(label=LABEL, prediction=PREDICTION, logits=LOGITS))
    read(agreeing)
    assert agreeing.beside is not None
    assert agreeing.beside.notes() == ()


@pytest.mark.parametrize(
    "beside",
    [np.array([{}] * 4, object), np.array(["a", "b", "c", "d"]), [0, 1], [[0, 1]] * 4, [0.5] * 4],
    ids=["object", "names", "short", "wide", "fractions"],
)
def test_what_can_not_be_compared_with_scores_is_left_unread(beside: Any) -> None:
    predictions = opened(npz(label=LABEL, prediction=beside, logits=LOGITS))
    assert read(predictions) == (LABEL, PREDICTION)
    assert predictions.beside is None or predictions.beside.n == 0


def test_label_sets_beside_scores_are_compared_too() -> None:
    scores = [[1.0, -1.0], [-1.0, 1.0]]
    npz(label=[[1, 0], [0, 1]], prediction=[[1, 0], [1, 1]], logits=scores)
    used = opened("preds.npz", task="multilabel")
    by_threshold = opened("preds.npz", task="multilabel", threshold=0.5)
    for predictions in (used, by_threshold):
        list(predictions.blocks)
        assert predictions.beside is not None
        assert predictions.beside.differing == 1
    assert used.beside is not None
    assert used.beside.used == "prediction"
    assert by_threshold.beside is not None
    assert by_threshold.beside.notes()[0].endswith(
        "logits was used (leave out --threshold for prediction)"
    )


def test_names_of_several_classes_are_refused_only_as_labels() -> None:
    """ImageNet has two cranes: numbers in a CSV need no names that differ."""
    write("names.txt", "crane\ncat\ncrane\n")
    write("numbers.csv", "label,prediction\n0,2\n1,1\n")
    assert read(opened("numbers.csv", classes=Path("names.txt"))) == ([0, 1], [2, 1])
    write("names.csv", "label,prediction\ncat,cat\ncat,crane\n")
    error = refusal("names.csv", classes=Path("names.txt"))
    assert "prediction holds 'crane', which names several classes" in error.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "label,prediction\n0,1\n1,\n",
            "prediction holds '', which is empty: once, first in row 1",
        ),
        ("label,prediction\n0,1\n1," + "9" * 10001, "prediction holds '9999"),
        ('{"label": 0, "prediction": ' + "9" * 10001 + "}", "holds a number of over 4300 digits"),
    ],
    ids=["empty", "digits", "json"],
)
def test_a_cell_that_is_no_class_number_is_told_as_it_is(content: str, message: str) -> None:
    assert message in refusal(write("preds", content)).message


def test_too_few_names_are_counted() -> None:
    write("names.txt", "cat\ndog\n")
    error = refusal(npz(label=[0, 3], prediction=[0, 1]), classes=Path("names.txt"))
    assert "label holds 3, outside 0..1: --classes has 2 names" in error.message


def test_lists_of_different_lengths_in_a_pt_file_are_refused() -> None:
    torch.save({"label": [0, 1, 2], "prediction": [0, 1]}, "preds.pt")
    assert "label has shape (3,), prediction has (2,)" in refusal("preds.pt").message


def test_maps_that_are_stored_column_by_column_are_read_as_they_are() -> None:
    maps = np.random.default_rng(0).integers(0, 9, (5, 3, 2))
    npz(label=np.asfortranarray(maps), prediction=maps)
    for rows in (6, 12, 1000):
        label, prediction = read(opened("preds.npz", task="pixels", block_rows=rows))
        assert label == prediction == maps.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("kind", "shape"), [("<U0", "(100000000000000,)"), ("<i8", "(100000000000000, 0)")]
)
def test_rows_of_no_bytes_are_refused(kind: str, shape: str) -> None:
    """A header may claim any number of them: reading went on for ever."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header = text.encode().ljust(117) + b"\n"
    Path("y.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    for task in ("classes", "multilabel", "pixels"):
        with pytest.raises(PttoolError, match=r"rows of 0 bytes|has shape"):
            list(open_predictions([], true="y.npy", pred="y.npy", task=task).blocks)


def test_names_of_digits_and_underscores_are_names() -> None:
    write("a.csv", "label,prediction\n0_1,0_0\n0_0,0_0\n")
    write("names.txt", "0_1\n0_0\n")
    assert read(opened("a.csv", classes=Path("names.txt"))) == ([0, 1], [1, 1])
    predictions = opened("a.csv")
    assert predictions.names == {0: "0_0", 1: "0_1"}
    assert read(predictions) == ([1, 0], [0, 0])
    write("b.csv", "label,prediction\n\u0661,\u0660\n")
    assert opened("b.csv").names == {0: "\u0660", 1: "\u0661"}


def test_a_name_comes_before_the_number_that_it_is() -> None:
    write("names.txt", "1e0\n0.0e0\n")
    write("a.csv", "label,prediction\n1e0,0.0e0\n")
    assert read(opened("a.csv", classes=Path("names.txt"))) == ([0], [1])
    assert read(opened("a.csv")) == ([1], [0])


def test_columns_of_a_pt_file_are_never_cut_to_the_shortest() -> None:
    torch.save({"label": [0, 1, 0], "scores": [[0.0, 1.0], [1.0, 0.0]]}, "preds.pt")
    assert "label has 3 rows, scores has 2" in refusal("preds.pt").message


def test_a_flat_prediction_beside_the_scores_of_label_sets_is_left_unread() -> None:
    write(
        "a.jsonl",
        '{"label": [0, 1], "prediction": [0, 1], "scores": [0.1, 0.9]}\n'
        '{"label": [0, 1], "prediction": 5, "scores": [0.1, 0.9]}\n',
    )
    predictions = opened("a.jsonl", task="multilabel", threshold=0.5, block_rows=1)
    assert len(read(predictions)[0]) == 2


def test_blocks_are_as_large_as_their_rows_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    scores = np.random.default_rng(0).random((6000, 200))
    columns = arrow.table({"label": [0] * 6000, "scores": scores.tolist()})
    pytest.importorskip("pyarrow.parquet").write_table(columns, "wide.parquet")
    table = open_table(Path("wide.parquet"))
    sizes = [len(block["scores"]) for block in table.read(("label", "scores"), 1 << 18)]
    assert sum(sizes) == 6000
    assert max(sizes) * 201 * 8 <= 1 << 23
    assert max(sizes) > 1 << 10
    monkeypatch.setattr("pttool.core.eval.reading.text_files.BLOCK_CELLS", 100)
    line = json.dumps({"label": [[0] * 5] * 5, "prediction": [[0] * 5] * 5})
    table = open_table(Path(write("maps.jsonl", f"{line}\n" * 5)))
    assert [len(block["label"]) for block in table.read(("label", "prediction"), 99)] == [2, 2, 1]


@pytest.mark.parametrize("name", ["preds.npz", "y.npy"])
def test_a_full_disk_is_told_as_such(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.asfortranarray(np.ones((4, 3)))
    npz(label=LABEL, scores=scores)
    np.save("y.npy", np.array(LABEL))
    np.save("s.npy", scores)
    full = Path("/dev/full")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda: full.open("r+b", buffering=0))
    files, keys = ([name], {}) if name == "preds.npz" else ([], {"true": name, "scores": "s.npy"})
    error = refusal(*files, **keys)
    assert isinstance(error, UnavailableError)
    assert "can't be kept in a temporary file: No space left" in error.message


class FailingDisk(io.BytesIO):
    """A file of which nothing past the first 64 KiB can be read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= 1 << 16:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)

    read1 = read


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npy"])
def test_a_disk_that_fails_is_told_by_the_file(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = '{"label": 0, "prediction": 0}\n' if suffix == ".jsonl" else "0,0\n"
    content = f"{'label,prediction' * (suffix == '.csv')}\n{row * 50_000}".encode()
    if suffix == ".npy":
        np.save("y.npy", np.zeros(200_000))
        content = Path("y.npy").read_bytes()
    source = Source(f"bad{suffix}", suffix, lambda: FailingDisk(content))
    monkeypatch.setattr("pttool.core.eval.reading.recognition.source_of", lambda file: source)
    keys = {"true": "y", "pred": "y"} if suffix == ".npy" else {}
    files = [] if suffix == ".npy" else ["bad"]
    error = refusal(*files, **keys, block_rows=100)
    assert isinstance(error, InputError)
    assert f"bad{suffix}: Input/output error" in error.message


def test_maps_under_the_names_of_scores_and_indices_can_be_named() -> None:
    maps = np.array([[[0, 1], [1, 0]]])
    npz(label=maps, outputs=maps, index=1 - maps)
    assert read(opened("preds.npz", task="pixels", pred="outputs"))[1] == [0, 1, 1, 0]
    assert read(opened("preds.npz", task="pixels", pred="index"))[1] == [1, 0, 0, 1]
    error = refusal("preds.npz", task="pixels", scores="outputs")
    assert "--scores: of pixels only classes are read" in error.message


def test_a_prediction_beside_the_scores_of_a_later_shard_is_compared() -> None:
    npz("a1.npz", label=LABEL, logits=LOGITS)
    npz("a2.npz", label=LABEL, prediction=[0, 1, 1, 0], logits=LOGITS)
    predictions = opened("a1.npz", "a2.npz")
    read(predictions)
    assert predictions.beside is not None
    assert (predictions.beside.n, predictions.beside.differing) == (4, 1)
