"""`pttool eval` as users run it, and the public bug reports it must not repeat."""

import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pexpect
import pytest

from tests.conftest import PTTOOL, Program, Pttool, assert_refused

HEADER = "Class,Label,# occurence,Precision,Recall,F1," + ",".join(
    f"Confused class {k}" for k in range(1, 6)
)
ANIMALS = {
    "label": [0, 0, 0, 0, 0, 1, 1, 1, 2, 2],
    "prediction": [0, 0, 0, 1, 3, 1, 1, 0, 0, 1],
}


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    """The worked example: preds.npz and names.txt."""
    _save(tmp_path, ANIMALS)
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\nowl\n")
    return tmp_path


def _save(folder: Path, arrays: Mapping[str, Any]) -> None:
    named: Any = {name: np.array(value) for name, value in arrays.items()}
    np.savez(folder / "preds.npz", **named)


def _json(pttool: Pttool, *args: str) -> dict[str, Any]:
    done = pttool("eval", "report", "preds.npz", *args, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout, parse_constant=pytest.fail)
    return document


def test_the_settled_csv(pttool: Pttool, animals: Path) -> None:
    done = pttool("eval", "report", "preds.npz", "--classes", "names.txt", "--csv")
    assert done.returncode == 0
    assert (
        done.stdout
        == f"""{HEADER}
cat,0,5,0.600,0.600,0.600,dog:1,owl:1,,,
dog,1,3,0.500,0.667,0.571,cat:1,,,,
fox,2,2,0.000,0.000,0.000,cat:1,dog:1,,,
owl,3,0,0.000,0.000,0.000,,,,,
All,,10,0.500,0.500,0.500,,,,,
"""
    )
    assert done.stderr == "pttool: note: 2 classes have a score that is 0/0, given as 0\n"


def test_the_json_of_the_worked_example(pttool: Pttool, animals: Path) -> None:
    document = _json(pttool, "--classes", "names.txt")
    summary = document["summary"]
    assert summary["accuracy"] == 0.5
    assert summary["balanced_accuracy"] == pytest.approx(0.4222222222, abs=1e-10)
    assert summary["kappa"] == pytest.approx(0.2063492063, abs=1e-10)
    assert summary["mcc"] == pytest.approx(0.2167871374, abs=1e-10)
    assert summary["macro"] == pytest.approx(
        {"precision": 0.275, "recall": 0.3166666667, "f1": 0.2928571429}, abs=1e-10
    )
    assert summary["weighted"] == pytest.approx(
        {"precision": 0.45, "recall": 0.5, "f1": 0.4714285714}, abs=1e-10
    )
    assert document["items"][2] == {
        "class": "fox", "label": 2, "support": 2, "precision": 0.0, "recall": 0.0, "f1": 0.0,
        "auc": None, "ap": None, "undefined": ["precision"],
        "confused": [{"class": "cat", "label": 0, "count": 1},
                     {"class": "dog", "label": 1, "count": 1}],
    }  # fmt: skip


@pytest.mark.parametrize("classes", [3, 4, 5, 8])
def test_unseen_classes_do_not_dilute_the_macro_average(
    pttool: Pttool, tmp_path: Path, classes: int
) -> None:
    """Old torchmetrics fell to 0.583, 0.467 and 0.292."""
    _save(tmp_path, {"label": [2, 1, 0, 0], "prediction": [2, 1, 0, 1]})
    document = _json(pttool, "--num-classes", str(classes))
    assert document["summary"]["macro"]["f1"] == pytest.approx(0.777778, abs=1e-6)
    assert document["summary"]["macro_classes"] == 3
    assert len(document["items"]) == classes


def test_a_confidence_of_exactly_one_is_in_the_last_bin(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, {"label": [1, 0], "probs": [[0.05, 0.95], [0.0, 1.0]]})
    assert _json(pttool, "--ece-bins", "10")["summary"]["ece"] == pytest.approx(0.475)


def test_score_columns_without_samples(pttool: Pttool, tmp_path: Path) -> None:
    probs = [[0.7, 0.2, 0.1, 0], [0.3, 0.6, 0.1, 0], [0.2, 0.7, 0.05, 0.05], [0.1, 0.8, 0.1, 0]]
    _save(tmp_path, {"label": [0, 1, 0, 1], "probs": probs})
    document = _json(pttool, "--topk", "2")
    summary = document["summary"]
    assert (summary["topk"], summary["accuracy"]) == ({"2": 1.0}, 0.75)
    assert (summary["macro_auc"], summary["auc_classes"]) == (0.75, 2)
    assert [item["auc"] for item in document["items"]][2:] == [None, None]


def test_a_prediction_of_the_ignored_class_stays_an_error(pttool: Pttool, tmp_path: Path) -> None:
    probs = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    _save(tmp_path, {"label": [0, 0, 1, 1], "probs": probs})
    summary = _json(pttool, "--ignore-index", "0")["summary"]
    assert (summary["macro"]["recall"], summary["accuracy"]) == (0.5, 0.5)
    assert (summary["n"], summary["ignored"]) == (2, 2)


def test_a_csv_for_excel_runs_no_names(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, {"label": [0, 1, 2, 3, 3], "prediction": [0, 1, 2, 3, 1]})
    (tmp_path / "names.txt").write_text("猫\nhorse, zebra\n=1+1\na:b\n", encoding="utf-8")
    args = ("eval", "report", "preds.npz", "--classes", "names.txt", "-o")
    assert pttool(*args, "plain.csv").returncode == 0
    assert pttool(*args, "excel.csv", "--excel").returncode == 0
    plain, excel = ((tmp_path / f"{name}.csv").read_bytes() for name in ("plain", "excel"))
    assert b"\r" not in plain
    assert plain.startswith(b"Class")
    assert excel.startswith(b"\xef\xbb\xbfClass")
    rows = list(csv.reader(io.StringIO(excel.decode("utf-8-sig"), newline="")))
    assert [len(row) for row in rows] == [11] * 6
    assert [row[0] for row in rows][1:4] == ["猫", "horse, zebra", "'=1+1"]
    assert excel.count(b"\r\n") == 6


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["accuracy=0.5"], 0),
        (["accuracy=0.5", "recall:cat=0.6"], 0),
        (["accuracy=0.51"], 1),
        (["recall:cat=0.61"], 1),
        (["precision:owl=0"], 0),  # owl was predicted, so its precision is 0; its recall is 0/0
        (["recall:owl=0"], 1),
        (["recall:horse=0"], 2),
        (["acuracy=0.5"], 2),
        (["accuracy"], 2),
    ],
    ids=str,
)
def test_gates(pttool: Pttool, animals: Path, gates: list[str], code: int) -> None:
    flags = [part for gate in gates for part in ("--fail-under", gate)]
    done = pttool("eval", "report", "preds.npz", "--classes", "names.txt", *flags)
    assert done.returncode == code, done.stderr
    if code == 1:
        assert "gates failed" in done.stderr
        assert done.stdout


def test_documents(pttool: Pttool, animals: Path) -> None:
    (animals / "names.txt").write_text("c|t\nd&g\n<b>fox</b>\nowl\n")
    for suffix, words in {
        ".md": "| c\\|t | 0 | 5 | 0.600",
        ".tex": "d\\&g & 1 & 3 & 0.500 & 0.667",
        ".html": "&lt;b&gt;fox&lt;/b&gt;",
    }.items():
        args = ("eval", "report", "preds.npz", "--classes", "names.txt", "-o", f"out{suffix}")
        assert pttool(*args).returncode == 0
        text = (animals / f"out{suffix}").read_text()
        assert words in text
        assert "<b>fox" not in text or suffix == ".tex"
        assert "http" not in text


@pytest.mark.parametrize(
    ("arrays", "args", "code", "words"),
    [
        ({"label": [0, 1], "prediction": [0]}, [], 3, ["2", "1"]),
        ({"label": [], "prediction": []}, [], 3, ["preds.npz"]),
        ({"label": [0, 7], "prediction": [0, 1]}, ["--num-classes", "3"], 3, ["7"]),
        ({"label": [0.5, 1], "prediction": [0, 1]}, [], 3, ["0.5"]),
        ({"label": [0, 1], "other": [0, 1]}, [], 3, ["other"]),
        ({"label": [0, 1], "probs": [[0.5, float("nan")], [0.1, 0.9]]}, [], 3, ["row 0"]),
    ],
    ids=["lengths", "empty", "label", "fraction", "keys", "nan"],
)
def test_predictions_that_make_no_sense(
    pttool: Pttool,
    tmp_path: Path,
    arrays: dict[str, Any],
    args: list[str],
    code: int,
    words: list[str],
) -> None:
    _save(tmp_path, arrays)
    assert_refused(pttool("eval", "report", "preds.npz", *args), code, "preds.npz", *words)


def test_labels_need_neither_torch_nor_scikit_learn(program: Program, animals: Path) -> None:
    for name in ("torch", "sklearn", "pandas", "scipy", "torchvision"):
        (animals / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')")
    done = program("eval", "report", "preds.npz", "--csv", env={"PYTHONPATH": str(animals)})
    assert done.stdout.startswith("Class,Label")


def _models(folder: Path) -> None:
    """Twelve samples: A is right alone in two of them, B in ten (McNemar's textbook case)."""
    label = [0] * 12
    np.savez(folder / "a.npz", label=label, prediction=[0] * 2 + [1] * 10)
    np.savez(folder / "b.npz", label=label, prediction=[1] * 2 + [0] * 10)


def test_two_models_are_compared_on_the_same_samples(pttool: Pttool, tmp_path: Path) -> None:
    _models(tmp_path)
    done = pttool("eval", "compare", "a.npz", "b.npz", "--json")
    document = json.loads(done.stdout)
    summary = document["summary"]
    assert (summary["only_a_right"], summary["only_b_right"]) == (2, 10)
    assert summary["mcnemar_p"] == 0.03857421875
    assert document["items"][0] == {
        "metric": "accuracy", "a": 2 / 12, "b": 10 / 12, "difference": pytest.approx(8 / 12),
    }  # fmt: skip
    low, high = summary["accuracy_difference_low"], summary["accuracy_difference_high"]
    assert 0 < low < 8 / 12 < high <= 1
    assert summary["worse_classes"] == []


def test_a_worse_model_fails_where_asked(pttool: Pttool, tmp_path: Path) -> None:
    _models(tmp_path)
    assert pttool("eval", "compare", "a.npz", "b.npz", "--fail-if-worse").returncode == 0
    done = pttool("eval", "compare", "b.npz", "a.npz", "--fail-if-worse", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["summary"]["worse_classes"][0]["class"] == "0"


def test_samples_are_aligned_by_their_index(pttool: Pttool, tmp_path: Path) -> None:
    index = np.arange(6)
    label = np.array([0, 1, 2, 0, 1, 2])
    np.savez(tmp_path / "a.npz", label=label, prediction=label, index=index)
    turned = index[::-1]
    np.savez(tmp_path / "b.npz", label=label[turned], prediction=label[turned], index=turned)
    done = pttool("eval", "compare", "a.npz", "b.npz", "--json")
    assert json.loads(done.stdout)["summary"]["accuracy_difference"] == 0
    np.savez(tmp_path / "c.npz", label=label[turned], prediction=label[turned])
    refused = pttool("eval", "compare", "a.npz", "c.npz")
    assert_refused(refused, 3, "different labels", "row 0")


def test_the_matrix_as_a_file(pttool: Pttool, animals: Path) -> None:
    names = ("--classes", "names.txt")
    for suffix in ("csv", "npz", "png"):
        done = pttool("eval", "report", "preds.npz", *names, "--matrix", f"m.{suffix}")
        assert done.returncode == 0, done.stderr
    assert (animals / "m.csv").read_text() == (
        "label,cat,dog,fox,owl\ncat,3,1,0,1\ndog,1,2,0,0\nfox,1,1,0,0\nowl,0,0,0,0\n"
    )
    with np.load(animals / "m.npz") as sparse:
        cells = list(zip(sparse["label"], sparse["prediction"], sparse["count"], strict=True))
        assert list(sparse["names"]) == ["cat", "dog", "fox", "owl"]
    assert sorted(cells) == [
        (0, 0, 3), (0, 1, 1), (0, 3, 1), (1, 0, 1), (1, 1, 2), (2, 0, 1), (2, 1, 1),
    ]  # fmt: skip
    assert (animals / "m.png").read_bytes().startswith(b"\x89PNG")


def test_pairs_sorting_and_a_second_opinion(pttool: Pttool, animals: Path) -> None:
    args = ("eval", "report", "preds.npz", "--classes", "names.txt", "--json")
    document = json.loads(pttool(*args, "--pairs", "1", "--sort", "f1", "--verify").stdout)
    assert [item["class"] for item in document["items"]] == ["cat", "dog", "fox", "owl"]
    assert document["summary"]["pairs"] == [
        {"label_name": "cat", "predicted_name": "dog", "label": 0, "predicted": 1, "count": 1}
    ]
    difference = next(note for note in document["notes"] if "scikit-learn" in note)
    assert float(difference.split()[-2]) < 1e-12


def test_pixels_give_intersection_over_union(pttool: Pttool, tmp_path: Path) -> None:
    """Worked by hand: class 0 has 4 of 6 pixels in common, class 1 has 2 of 4."""
    label = [[[0, 0], [0, 1]], [[0, 0], [1, 1]]]
    prediction = [[[0, 0], [1, 1]], [[0, 0], [0, 1]]]
    np.savez(tmp_path / "maps.npz", label=label, prediction=prediction)
    refused = pttool("eval", "report", "maps.npz")
    assert_refused(refused, 2, "maps.npz", "--task pixels")
    done = pttool("eval", "report", "maps.npz", "--task", "pixels", "--json")
    document = json.loads(done.stdout)
    assert [item["iou"] for item in document["items"]] == [4 / 6, 2 / 4]
    assert document["summary"]["mean_iou"] == pytest.approx((4 / 6 + 2 / 4) / 2)
    assert document["summary"]["n"] == 8


TAGS = {
    "label": [[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]],
    "prediction": [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 0, 0]],
    "logits": [[2.0, -1.0, 0.0], [-3.0, 0.5, 4.0], [1.0, -0.25, -9.0], [-1.0, -1.0, -1.0]],
}
MULTILABEL = ("--task", "multilabel")


def test_the_csv_of_several_labels_per_sample(pttool: Pttool, tmp_path: Path) -> None:
    """Worked by hand; of 4 samples 5 labels were given, 5 predicted, 4 of them rightly."""
    _save(tmp_path, TAGS)
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\n")
    args = ("eval", "report", "preds.npz", *MULTILABEL, "--classes", "names.txt")
    done = pttool(*args, "--csv")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == f"""{HEADER}
cat,0,2,1.000,1.000,1.000,,,,,
dog,1,2,1.000,0.500,0.667,,,,,
fox,2,1,0.500,1.000,0.667,,,,,
All,,5,0.800,0.800,0.800,,,,,
"""
    )
    gates = ("--fail-under", "precision:cat=1", "--fail-under", "accuracy=0.5")
    assert pttool(*args, *gates).returncode == 0
    done = pttool(*args, "--fail-under", "precision:fox=0.6", "--fail-under", "samples_f1=0.1")
    assert done.returncode == 1
    assert "1 of 2 gates failed: precision:fox=0.6: is 0.5" in done.stderr
    assert_refused(pttool(*args, "--fail-under", "kappa=0"), 2, "no metric 'kappa'")


def test_the_json_of_several_labels_per_sample(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, TAGS)
    document = _json(pttool, *MULTILABEL, "--threshold", "0.5", "--verify", "--ci", "0.95")
    summary = document["summary"]
    assert (summary["n"], summary["accuracy"], summary["threshold"]) == (4, 0.5, 0.5)
    assert summary["hamming_loss"] == pytest.approx(2 / 12)
    assert [summary[name] for name in ("kappa", "mcc", "balanced_accuracy", "topk")] == [None] * 4
    assert summary["samples"]["recall"] == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert list(summary["ci"]) == ["accuracy"]
    assert (summary["auc_classes"], document["items"][2]["auc"]) == (3, pytest.approx(2 / 3))
    assert "and predict a class from probability 0.5" in document["notes"][0]
    assert float(document["notes"][-1].split()[-2]) < 1e-12


def test_documents_of_several_labels_per_sample(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, TAGS)
    for suffix in (".md", ".tex", ".html", ".txt"):
        done = pttool("eval", "report", "preds.npz", *MULTILABEL, "-o", f"out{suffix}")
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "out.html").read_text()
    assert "Subset accuracy" in page
    assert "onfus" not in page
    assert "Hamming loss:" in (tmp_path / "out.txt").read_text()


def test_what_several_labels_per_sample_have_not(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, TAGS)
    for option in (("--matrix", "m.csv"), ("--pairs", "3"), ("--confused-by", "column"),
                   ("--ignore-index", "0"), ("--num-classes", "4")):  # fmt: skip
        assert_refused(pttool("eval", "report", "preds.npz", *MULTILABEL, *option), 2, option[0])
    assert_refused(pttool("eval", "report", "preds.npz"), 2, "--task multilabel")
    assert_refused(pttool("eval", "report", "preds.npz", "--threshold", "0.2"), 2, "--threshold")
    _save(tmp_path, {"label": [0, 1], "prediction": [0, 1]})
    assert_refused(pttool("eval", "report", "preds.npz", *MULTILABEL), 3, "label has shape (2,)")


def test_two_models_with_several_labels_per_sample(pttool: Pttool, tmp_path: Path) -> None:
    """A sample is right if all of its labels are."""
    _save(tmp_path, TAGS)
    label = np.array(TAGS["label"])
    np.savez(tmp_path / "right.npz", label=label, prediction=label)
    args = ("eval", "compare", "preds.npz", "right.npz", *MULTILABEL, "--json")
    document = json.loads(pttool(*args).stdout)
    assert document["items"][0] == {"metric": "accuracy", "a": 0.5, "b": 1.0, "difference": 0.5}
    assert [item["metric"] for item in document["items"]][1] == "hamming_loss"
    assert (document["summary"]["only_a_right"], document["summary"]["only_b_right"]) == (0, 2)
    assert pttool(*args, "--fail-if-worse").returncode == 0
    np.savez(tmp_path / "right.npz", label=label[:, :2], prediction=label[:, :2])
    assert_refused(pttool(*args), 3, "A has 3 classes and B 2")


def test_what_can_be_read_once_is_read_once(pttool: Pttool, animals: Path) -> None:
    """Names of both models come from one pipe; what reads twice says that it can't."""
    os.mkfifo(animals / "pipe")
    names = (animals / "names.txt").read_bytes()
    Thread(target=(animals / "pipe").write_bytes, args=(names,), daemon=True).start()
    args = ("eval", "compare", "preds.npz", "preds.npz", "--classes", "pipe")
    assert pttool(*args).returncode == 0
    os.mkfifo(animals / "twice")
    assert_refused(pttool("eval", "report", "twice", "--verify"), 2, "--verify reads twice")


def test_a_gate_of_a_name_that_two_classes_have(pttool: Pttool, animals: Path) -> None:
    (animals / "names.txt").write_text("cat\ndog\ncat\nowl\n")
    args = ("eval", "report", "preds.npz", "--classes", "names.txt", "--fail-under")
    refused = pttool(*args, "recall:cat=0.1")
    assert_refused(refused, 2, "'cat' names 2 classes, 0 and 2", "recall:0")
    done = pttool(*args, "recall:0=0.6")
    assert done.returncode == 0
    assert "1 name stands for several classes ('cat' for 0 and 2)" in done.stderr
    assert pttool(*args, "recall:2=0.1").returncode == 1


SCORED = {
    "label": [0, 1, 2, 1],
    "logits": [[2, 0, 1], [0, 3, 1], [0, 1, 2], [3, 1, 0]],
}


def test_people_see_what_they_asked_for(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, SCORED)
    args = ("eval", "report", "preds.npz", "--ci", "0.9", "--topk", "2", "--pairs", "2")
    table = pttool(*args)
    assert pttool(*args, "-o", "out.html").returncode == 0
    for text in (table.stdout, (tmp_path / "out.html").read_text()):
        for title in ("Top-2 accuracy", "Brier score", "Macro AUC", "Macro AP",
                      "Accuracy, 90 % interval", "Macro F1, 90 % interval"):  # fmt: skip
            assert title in text
    assert "  1  1 taken for 0\n" in table.stdout
    assert "taken for" not in table.stderr
    assert "| 1 | 0 | 1 |\n" in pttool(*args, "--md").stdout
    assert "1 of 1 were taken for 0" in pttool(*args, "--csv").stderr


def test_the_classes_that_got_worse_are_rows(pttool: Pttool, tmp_path: Path) -> None:
    _models(tmp_path)
    done = pttool("eval", "compare", "b.npz", "a.npz", "--fail-if-worse")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["recall:0", "0.833333", "0.166667", "-0.666667"] in rows
    assert "McNemar's p:                   0.0386\n" in done.stdout
    assert "Accuracy B - A, 95 % interval: -" in done.stdout
    assert "1 class has a lower recall in B" in done.stderr
    assert "B's accuracy 0.166667 is lower than A's 0.833333" in done.stderr


def test_the_heat_map_shows_the_most_confused_pairs(pttool: Pttool, tmp_path: Path) -> None:
    """Of 60 classes 50 and 51 are confused most, though 0 has more errors, one of each kind."""
    label = [0] * 40 + [50] * 5 + [51] * 10
    prediction = [*range(10, 50), *[51] * 4, 50, *[51] * 10]
    _save(tmp_path, {"label": label, "prediction": prediction})
    args = ("eval", "report", "preds.npz", "--num-classes", "60", "-o", "out.html")
    assert pttool(*args).returncode == 0
    grid = (tmp_path / "out.html").read_text().partition('class="heat"')[2].partition("</table>")[0]
    assert "<th>50</th><th>51</th><th>other classes</th>" in grid
    assert '0.800)">4</td>' in grid  # 4 of all 5 with the label 50


def test_a_page_of_many_classes_holds_the_worst(pttool: Pttool, tmp_path: Path) -> None:
    label = np.arange(2500)
    _save(tmp_path, {"label": label, "prediction": np.where(label == 2400, 0, label)})
    args = ("eval", "report", "preds.npz", "--num-classes", "5000", "-o", "out.html")
    assert pttool(*args).returncode == 0
    page = (tmp_path / "out.html").read_text()
    assert "The 2,000 with the lowest F1; 3,000 more are in the CSV." in page
    assert page.count("<tr><td>") == 2000 + 1
    assert "<tr><td>2400</td>" in page
    assert "<tr><td>4999</td>" not in page  # never occurs


def test_the_matrix_for_excel(pttool: Pttool, animals: Path) -> None:
    (animals / "names.txt").write_text("=1+1\ndog\nfox\nowl\n")
    args = ("eval", "report", "preds.npz", "--classes", "names.txt", "--matrix", "m.csv")
    assert pttool(*args, "--excel", "--json").returncode == 0
    lines = (animals / "m.csv").read_bytes().split(b"\r\n")
    assert lines[0] == "\ufefflabel,'=1+1,dog,fox,owl".encode()
    assert lines[1] == b"'=1+1,3,1,0,1"


def test_a_picture_of_few_classes_is_enlarged(pttool: Pttool, tmp_path: Path) -> None:
    label = np.arange(120)
    _save(tmp_path, {"label": label, "prediction": label})
    assert pttool("eval", "report", "preds.npz", "--matrix", "m.png").returncode == 0
    header = (tmp_path / "m.png").read_bytes()[16:24]
    assert int.from_bytes(header[:4], "big") == 960


@pytest.mark.parametrize("format", ["csv", "md", "latex", "html"])
def test_documents_hold_no_control_characters(pttool: Pttool, animals: Path, format: str) -> None:
    (animals / "names.json").write_text(json.dumps(["\x1b[31mred", "\u202egnp", "a\nb", "owl"]))
    (animals / "m.csv").unlink(missing_ok=True)
    args = ("eval", "report", "preds.npz", "--classes", "names.json", f"--{format}")
    done = pttool(*args, "--matrix", "m.csv")
    for text in (done.stdout, (animals / "m.csv").read_text()):
        assert "x1b" in text
        assert "u202e" in text
        assert not set("\x1b\u202e") & set(text)
    assert ('"a\nb"' in done.stdout) == (format == "csv")


def test_totals_that_are_0_by_0_are_noted(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, {"label": [0, 0], "prediction": [0, 0]})
    done = pttool("eval", "report", "preds.npz")
    assert "pttool: note: kappa and mcc are 0/0, given as 0\n" in done.stderr


def test_verify_compares_the_losses(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, {"label": [0, 1, 1, 2], "logits": np.diag([1e4, 5.0, 900.0, 2.0])[:, :3]})
    notes = _json(pttool, "--verify")["notes"]
    difference = next(note for note in notes if "scikit-learn" in note)
    assert float(difference.split()[-2]) < 1e-12


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("log_loss=1", ["log_loss is a loss"]),
        ("brier=1", ["brier is a loss"]),
        ("f1=0.5", ["macro_f1", "f1:CLASS"]),
        ("nonsense=0.5", ["no metric 'nonsense'"]),
    ],
)
def test_gates_that_make_no_sense(
    pttool: Pttool, animals: Path, gate: str, words: list[str]
) -> None:
    assert_refused(pttool("eval", "report", "preds.npz", "--fail-under", gate), 2, *words)


def test_gates_are_spelt_as_in_json_too(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, SCORED)
    args = ("eval", "report", "preds.npz", "--fail-under")
    for gate in ("macro.f1=0.1", "topk.5=1", "weighted.recall=0.1"):
        assert pttool(*args, gate).returncode == 0
    done = pttool(*args, "accuracy=0.75", "--fail-on-ci")
    assert done.returncode == 1
    assert "accuracy=0.75: the lower end of its interval is 0.3" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--excel", "--json"], ["--excel"]),
        (["--excel", "-o", "out.md"], ["--excel"]),
        (["--normalize"], ["--normalize"]),
        (["--normalize", "--matrix", "m.npz"], ["--normalize", "m.npz"]),
        (["--fail-on-ci"], ["--fail-on-ci"]),
        (["--fail-on-ci", "--ci", "0.9"], ["--fail-on-ci"]),
        (["--topk", "3"], ["--topk", "no scores"]),
        (["--ece-bins", "3"], ["--ece-bins", "no scores"]),
        (["--topk", "0"], ["--topk", "0 best"]),
        (["--topk", "9" * 5000], ["--topk"]),
        (["--seed", "-1", "--ci", "0.9"], ["--seed"]),
    ],
    ids=lambda options: " ".join(options)[:30],
)
def test_an_option_without_effect_is_refused(
    pttool: Pttool, animals: Path, options: list[str], words: list[str]
) -> None:
    assert_refused(pttool("eval", "report", "preds.npz", *options), 2, *words)
    assert not (animals / "m.npz").exists()


def test_numbers_stay_whole_in_a_narrow_terminal(
    animals: Path, environment: dict[str, str]
) -> None:
    terminal = pexpect.spawn(
        PTTOOL,
        ["eval", "report", "preds.npz"],
        cwd=str(animals),
        env={**environment, "TERM": "xterm", "COLUMNS": "42"},
        dimensions=(24, 42),
        encoding="utf-8",
        timeout=60,
    )
    terminal.expect(pexpect.EOF)
    assert "0.600" in terminal.before
    assert "(too narrow for: Label, Confused with)" in terminal.before


def test_no_input_is_overwritten(pttool: Pttool, animals: Path) -> None:
    np.savez(animals / "m.npz", label=[0], prediction=[0])
    (animals / "a.csv").write_text("label,prediction\n0,0\n")
    (animals / "n.csv").write_text("cat\ndog\n")
    np.save(animals / "y.npy", [0, 1])
    (animals / "y.npy").rename(animals / "y.csv")
    before = {path: path.read_bytes() for path in animals.iterdir()}
    arrays = ("--true", "y.csv", "--pred", "y.csv")
    for args, output in (
        (("report", "m.npz", "--matrix", "m.npz"), "m.npz"),
        (("report", "a.csv", "--classes", "n.csv", "-o", "n.csv"), "n.csv"),
        (("report", "a.csv", "--classes", "n.csv", "--matrix", "n.csv"), "n.csv"),
        (("report", *arrays, "-o", "y.csv"), "y.csv"),
        (("report", *arrays, "--matrix", "y.csv"), "y.csv"),
        (("compare", "a.csv", "a.csv", "-o", "a.csv"), "a.csv"),
        (("compare", "a.csv", "a.csv", "--classes", "n.csv", "-o", "n.csv"), "n.csv"),
    ):
        assert_refused(pttool("eval", *args, "--force"), 2, f"{output}: is an input")
    assert {path: path.read_bytes() for path in animals.iterdir()} == before


def test_the_report_and_the_matrix_need_a_file_each(pttool: Pttool, animals: Path) -> None:
    args = ("eval", "report", "preds.npz", "--matrix", "o.csv", "-o", "./o.csv")
    assert_refused(pttool(*args), 2, "o.csv: both the report and the matrix")
    assert not (animals / "o.csv").exists()


def _compare(pttool: Pttool, *args: str) -> dict[str, Any]:
    done = pttool("eval", "compare", *args, "--json")
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)["summary"]
    return summary


def test_models_that_predict_different_names_are_compared(pttool: Pttool, tmp_path: Path) -> None:
    """A never says ant, and B never owl: each file alone numbers its names otherwise."""
    (tmp_path / "a.csv").write_text("label,prediction\ncat,cat\ndog,owl\ndog,dog\n")
    (tmp_path / "b.csv").write_text("label,prediction\ncat,ant\ndog,dog\ndog,dog\n")
    (tmp_path / "c.csv").write_text("label,prediction\n0,0\n1,1\n1,1\n")
    summary = _compare(pttool, "a.csv", "b.csv")
    assert (summary["only_a_right"], summary["only_b_right"]) == (1, 1)
    assert [each["class"] for each in summary["worse_classes"]] == ["cat"]
    refused = pttool("eval", "compare", "a.csv", "c.csv")
    assert_refused(refused, 3, "the labels of A are names, those of B numbers", "--classes")
    refused = pttool("eval", "compare", "a.csv", "b.csv", "--ignore-index", "0")
    assert_refused(refused, 3, "A and B hold different names", "--classes")


def test_a_comparison_leaves_the_ignored_class_out_of_its_averages(
    pttool: Pttool, tmp_path: Path
) -> None:
    _save(tmp_path, {"label": [0, 1, 2, 2], "prediction": [0, 0, 2, 2]})
    ignoring = ("--ignore-index", "0")
    ours = _json(pttool, *ignoring)["summary"]["macro_f1"]
    done = pttool("eval", "compare", "preds.npz", "preds.npz", *ignoring, "--json")
    items = {item["metric"]: item["a"] for item in json.loads(done.stdout)["items"]}
    assert items["macro_f1"] == ours == 0.5


def test_an_index_of_a_csv_is_that_of_an_npz(pttool: Pttool, tmp_path: Path) -> None:
    index = np.array([3, 20, 100])
    np.savez(tmp_path / "a.npz", label=[0, 1, 1], prediction=[0, 1, 1], index=index)
    (tmp_path / "b.csv").write_text("index,label,prediction\n100,1,0\n3,0,0\n20,1,1\n")
    assert _compare(pttool, "a.npz", "b.csv")["only_a_right"] == 1
    (tmp_path / "c.csv").write_text("index,label,prediction\n100,1,0\n3,0,0\n20,0,1\n")
    refused = pttool("eval", "compare", "a.npz", "c.csv")
    assert_refused(refused, 3, "different labels for 1 samples, first at index 20: 1 and 0")
    (tmp_path / "d.csv").write_text("index,label,prediction\n100,1,0\n03,0,0\n20,1,1\n")
    assert_refused(pttool("eval", "compare", "a.npz", "d.csv"), 3, "different index")


def test_verify_keeps_the_words_of_scikit_learn_back(pttool: Pttool, tmp_path: Path) -> None:
    _save(tmp_path, {"label": [0, 0], "prediction": [0, 0]})
    done = pttool("eval", "report", "preds.npz", "--verify")
    assert done.returncode == 0
    assert all(line.startswith("pttool: note: ") for line in done.stderr.splitlines())


def test_the_worst_classes_are_listed_as_asked(pttool: Pttool, animals: Path) -> None:
    worst = ("--classes", "names.txt", "--worst", "3")
    listed = [item["class"] for item in _json(pttool, *worst)["items"]]
    assert listed == ["fox", "owl", "dog"]
    for sort, order in (("name", "dog fox owl"), ("support", "dog fox owl"), ("label", None)):
        listed = [item["class"] for item in _json(pttool, *worst, "--sort", sort)["items"]]
        assert listed == (order or "dog fox owl").split()


def test_documents_hold_the_intersection_over_union(pttool: Pttool, animals: Path) -> None:
    args = ("eval", "report", "preds.npz", "--iou")
    lines = pttool(*args, "--md").stdout.splitlines()
    assert lines[0] == "| Class | Label | Samples | Precision | Recall | F1 | IoU | Confused with |"
    assert lines[2].startswith("| 0 | 0 | 5 | 0.600 | 0.600 | 0.600 | 0.429 | ")
    assert {line.count("|") for line in lines} == {9}
    page = pttool(*args, "--html").stdout
    assert "<th>IoU</th>" in page
    assert ">0.429</td>" in page
    assert "IoU" not in pttool("eval", "report", "preds.npz", "--md").stdout


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("accuracy=inf", ["is not METRIC=VALUE"]),
        ("acuracy=0.5", ["no metric 'acuracy'", "accuracy"]),
        ("top7=0.5", ["no metric 'top7'", "top5"]),
        ("kappa:cat=0.5", ["no metric 'kappa' of a class"]),
    ],
)
def test_gates_are_checked_before_the_predictions_are_read(
    pttool: Pttool, tmp_path: Path, gate: str, words: list[str]
) -> None:
    assert_refused(pttool("eval", "report", "missing.npz", "--fail-under", gate), 2, *words)


def test_every_metric_can_be_a_gate(tmp_path: Path) -> None:
    from pttool.core.eval.gates import TOTALS, values
    from pttool.core.eval.report import Options, make
    from pttool.core.eval.samples.predictions import open_predictions

    _save(tmp_path, SCORED)
    of_classes = make(open_predictions([tmp_path / "preds.npz"]), Options())
    _save(tmp_path, TAGS)
    of_sets = make(open_predictions([tmp_path / "preds.npz"], task="multilabel"), Options())
    named = {*values(of_classes.evaluation), *values(of_sets.evaluation)}
    assert named == {*TOTALS, "top1", "top5"}


def test_nothing_is_said_to_be_cut_that_is_not(animals: Path, environment: dict[str, str]) -> None:
    for classes, is_cut in (("50", True), ("30", False)):
        (animals / "names.txt").write_text("".join(f"c{k}\n" for k in range(int(classes))))
        args = ["eval", "report", "preds.npz", "--classes", "names.txt", "--num-classes", "50"]
        args += [] if is_cut else ["--seen-only"]
        terminal = pexpect.spawn(
            PTTOOL, args, cwd=str(animals), env={**environment, "TERM": "xterm"},
            dimensions=(60, 200), encoding="utf-8", timeout=60,
        )  # fmt: skip
        terminal.expect(pexpect.EOF)
        assert ("the 20 classes with the lowest F1 are shown" in terminal.before) == is_cut


def test_the_picture_of_a_matrix_holds_its_shares(program: Program, animals: Path) -> None:
    """Held against another reader: white where nothing is, dark where all is."""
    image = pytest.importorskip("PIL.Image")
    _save(animals, {"label": [0, 0, 1], "prediction": [0, 0, 0]})
    (animals / "PIL.py").write_text("raise SystemExit('PIL was imported')")
    env = {"PYTHONPATH": str(animals)}
    done = program("eval", "report", "preds.npz", "--matrix", "m.png", env=env)
    assert done.returncode == 0, done.stderr
    with image.open(animals / "m.png") as picture:
        pixels = np.asarray(picture)
    assert pixels.shape == (1000, 1000, 3)
    dark, white = [0, 50, 165], [255, 255, 255]
    for row, column, colour in ((0, 0, dark), (0, 999, white), (500, 499, dark), (999, 999, white)):
        assert np.abs(pixels[row, column].astype(int) - colour).max() <= 1
