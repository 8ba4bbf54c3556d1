"""`pttool curve` as users run it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PTTOOL, Program, Pttool, assert_refused


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two runs of ten epochs, whose best losses are 0.1 and 0.2."""
    for name, scale in (("a", 1), ("b", 2)):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        rows = [f"{epoch},{scale / (epoch + 1)},{epoch / 10}" for epoch in range(10)]
        (folder / "metrics.csv").write_text("\n".join(["epoch,loss,acc", *rows]) + "\n")
    return ["runs/a/metrics.csv", "runs/b/metrics.csv"]


def test_a_panel_for_each_column_and_a_letter_for_each_run(pttool: Pttool, runs: list[str]) -> None:
    done = pttool("curve", *runs)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line in ("loss", "acc")] == ["loss", "acc"]
    assert lines[-1].split() == ["a", "a", "b", "b"]
    assert "\x1b" not in done.stdout
    assert max(map(len, lines)) <= 80


def test_points_and_the_best_of_each_run(pttool: Pttool, runs: list[str]) -> None:
    done = pttool("curve", *runs, "-c", "loss", "--smooth", "0.5", "--json")
    document = json.loads(done.stdout, parse_constant=pytest.fail)
    best = {each["run"]: (each["min"], each["min_x"]) for each in document["summary"]["curves"]}
    assert best == {"a": (0.1, 9), "b": (0.2, 9)}
    first, second = document["items"][:2]
    assert (first["x"], first["value"], first["smoothed"]) == (0, 1, 1)
    assert second["smoothed"] == pytest.approx(0.5 / 0.75)  # (w * 0.5 + (1 - w) * 0.5) / (1 - w**2)
    csv = pttool("curve", runs[0], "-c", "acc", "--csv").stdout.splitlines()
    assert csv[:2] == ["run,column,x,value,smoothed", "runs/a/metrics.csv,acc,0,0.0,"]


def test_nan_is_null_in_json_and_said(pttool: Pttool, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": NaN}\n{"step": 2, "loss": 0.5}\n')
    done = pttool("curve", "log.jsonl", "--json")
    values = [
        item["value"] for item in json.loads(done.stdout, parse_constant=pytest.fail)["items"]
    ]
    assert values == [None, 0.5]
    assert "loss: 1 of 2 values are no numbers" in done.stderr


def test_pictures(pttool: Pttool, runs: list[str], tmp_path: Path) -> None:
    for name, magic in (("loss.png", b"\x89PNG"), ("loss.svg", b"<?xml")):
        done = pttool("curve", *runs, "--log", "-c", "loss", "-o", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / name).read_bytes().startswith(magic)
    refused = pttool("curve", runs[0], "-o", runs[0], "--force")
    assert_refused(refused, 2, "is an input")
    assert_refused(pttool("curve", runs[0], "-o", "no/x.png"), 2, "mkdir")


def test_what_cannot_be_drawn_is_refused_by_name(
    pttool: Pttool, runs: list[str], tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text("Epoch 1: loss 0.5\nEpoch 2: loss 0.4\n")
    assert_refused(pttool("curve", "train.log"), 3, "train.log: is a text log")
    assert_refused(pttool("curve", "none.csv"), 3, "none.csv: No such file")
    assert_refused(pttool("curve", *runs, "-c", "los"), 2, "Did you mean 'loss'?")
    assert_refused(pttool("curve", *runs, "-x", "epok"), 2, "Did you mean 'epoch'?")
    some = pttool("curve", "train.log", *runs)
    assert some.returncode == 3
    assert some.stdout.startswith("loss\n")
    assert "train.log: is a text log" in some.stderr


def test_a_pipe_is_read(runs: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [PTTOOL, "curve", "-", "-c", "loss", "--ndjson"],
        input=(tmp_path / runs[0]).read_bytes(),
        capture_output=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 10


def test_colour_and_characters_follow_the_environment(program: Program, runs: list[str]) -> None:
    forced = program("curve", *runs, env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[34m" in forced
    assert "\x1b" not in program("curve", *runs, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    narrow = program("curve", runs[0], env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert narrow.returncode == 0
    assert narrow.stdout.isascii()
