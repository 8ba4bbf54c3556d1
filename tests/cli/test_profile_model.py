"""`pttool profile model` as users run it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Completed, Program, Pttool, assert_refused

NETS = """
import os
import time
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)

class Sleeper(nn.Module):
    def forward(self, x):
        time.sleep(0.005)
        return x

class Sleepy(Net):
    def __init__(self):
        super().__init__()
        self.sleeper = Sleeper()
    def forward(self, x):
        return self.fc(self.sleeper(x))

class Loud(Net):
    def forward(self, x):
        print("from print")
        os.system("echo from a child")
        os.write(1, b"from a descriptor\\n")
        return self.fc(x)

class Small(Net):
    def forward(self, x):
        if len(x) > 2:
            raise RuntimeError("too large for me")
        return self.fc(x)

class NoGradient(nn.Module):
    def forward(self, x):
        return 2 * x
"""
QUICK = ("--min-time", "0", "--threads", "1")


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    """A file of models, in the folder that commands run in."""
    path = tmp_path / "nets.py"
    path.write_text(NETS)
    return path


def _profile(pttool: Pttool, name: str, *args: str) -> Completed:
    return pttool("profile", "model", name, *QUICK, *args)


def _document(done: Completed) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_row_for_each_batch_size(pttool: Pttool, nets: Path) -> None:
    document = _document(
        _profile(pttool, "nets.py:Sleepy", "-i", "4", "--batch", "1,8,32", "--json")
    )
    items = document["items"]
    assert document["command"] == "profile model"
    assert [item["batch"] for item in items] == [1, 8, 32]
    for item in items:
        assert 5 <= item["p50_ms"] <= item["p90_ms"] <= item["p99_ms"]  # it sleeps as long
        assert item["images_per_s"] <= 1000 * item["batch"] / 5
        assert item["macs"] == item["batch"] * 4 * 2
        assert item["macs_per_s"] == pytest.approx(item["images_per_s"] * 4 * 2, abs=1)
        assert item["peak_bytes"] == 4 * (4 * 2 + 2 + item["batch"] * (4 + 2))
    summary = document["summary"]
    slowest = summary["modules"][0]
    assert (slowest["name"], slowest["type"], slowest["calls"]) == ("sleeper", "Sleeper", 1)
    assert slowest["self_ms"] >= 5
    assert summary["ceiling_macs_per_s"] > 0
    assert (summary["breakdown_batch"], summary["threads"], summary["mode"]) == (32, 1, "eval")


@pytest.mark.parametrize(
    ("args", "header"),
    [
        ([], "batch,p50_ms,p90_ms,p99_ms,images_per_s,macs_per_s,ceiling_fraction,peak_bytes"),
        (["--by", "module"], "name,type,calls,self_ms,total_ms,fraction,macs"),
        (["--by", "op"], "name,calls,self_ms,total_ms,fraction,self_bytes"),
        (["--by", "op", "--shapes"], "name,calls,self_ms,total_ms,fraction,self_bytes,shapes"),
    ],
)
def test_what_the_rows_are(pttool: Pttool, nets: Path, args: list[str], header: str) -> None:
    done = _profile(pttool, "nets.py:Net", "-i", "4", "--csv", *args)
    assert done.stdout.startswith(header)
    assert done.returncode == 0
    if args:
        rows = done.stdout.splitlines()[1:]
        assert any(row.startswith(("fc,Linear,1,", "aten::addmm,1,")) for row in rows)


def test_the_table_ends_in_what_is_slowest(pttool: Pttool, nets: Path) -> None:
    done = _profile(pttool, "nets.py:Sleepy", "-i", "4")
    assert "Slowest modules (share): sleeper 0." in done.stdout
    assert "aten::addmm" in done.stdout


def test_neither_the_models_prints_nor_the_profilers_are_in_the_way(
    program: Program, nets: Path
) -> None:
    done = program("profile", "model", "nets.py:Loud", "-i", "4", *QUICK, "--json")
    assert _document(done)["items"][0]["batch"] == 1
    assert set(done.stderr.splitlines()) == {"from print", "from a child", "from a descriptor"}


def test_training_counts_the_backward(pttool: Pttool, nets: Path) -> None:
    done = _profile(pttool, "nets.py:Net", "-i", "4", "--mode", "train", "--json")
    document = _document(done)
    assert document["items"][0]["macs"] == 2 * 4 * 2  # of the weight; none asks for the input's
    assert any(op["name"] == "AddmmBackward0" for op in document["summary"]["ops"])


def test_dtype_and_shapes_without_a_batch(pttool: Pttool, nets: Path) -> None:
    args = ("-i", "3,4", "--no-batch", "--dtype", "bfloat16", "--json")
    document = _document(_profile(pttool, "nets.py:Net", *args))
    assert document["summary"]["dtype"] == "bfloat16"
    assert document["items"][0]["peak_bytes"] == 2 * (4 * 2 + 2 + 3 * (4 + 2))
    assert document["items"][0]["batch"] is document["items"][0]["images_per_s"] is None


def test_a_batch_that_fails_leaves_those_before_it(pttool: Pttool, nets: Path) -> None:
    done = _profile(pttool, "nets.py:Small", "-i", "4", "--batch", "1,2,4,8", "--tsv")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["batch", "1", "2"]
    assert done.returncode == 3
    assert "too large for me" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["Net", "-i", "4", "--batch", "1,x"], 2, "'x' is no batch size"),
        (["Net", "-i", "4", "--batch", "0"], 2, "no batch size"),
        (["Net", "-i", "4", "--device", "meta"], 2, "computes nothing"),
        (["Net", "-i", "4", "--channels-last"], 2, "4 or 5 dimensions"),
        (["Net", "-i", "4", "--min-time", "inf"], 2, "--min-time"),
        (["Net", "-i", "4", "--threads", "0"], 2, "--threads"),
        (["Net"], 2, "no input size"),
        (["Net", "-i", "5"], 3, "failed in fc"),
        (["NoGradient", "-i", "4", "--mode", "train"], 3, "has a gradient"),
        (["Net", "-i", "4", "--device", "cuda"], 4, "CUDA"),
    ],
)
def test_refusals(pttool: Pttool, nets: Path, args: list[str], code: int, word: str) -> None:
    name, *options = args
    assert_refused(_profile(pttool, f"nets.py:{name}", *options), code, word)


def test_compiling_where_it_is_turned_off_is_refused(program: Program, nets: Path) -> None:
    args = ("profile", "model", "nets.py:Net", "-i", "4", *QUICK, "--compile")
    assert_refused(program(*args, env={"TORCH_COMPILE_DISABLE": "1"}), 4, "TORCH_COMPILE_DISABLE")


def test_a_time_that_is_no_number_is_refused(pttool: Pttool) -> None:
    done = pttool("profile", "model", "resnet18", "-i", "3,32,32", "--min-time", "nan")
    assert_refused(done, 2, "nan")
    done = pttool("profile", "--hz", "nan", "train.py")
    assert_refused(done, 2, "nan")
