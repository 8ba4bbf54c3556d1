"""`pttool profile` on real scripts: what it says of planted faults, and that it always says it."""

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Completed, Pttool, assert_refused

# Makes a batch in 40 ms and uses it up in 25 ms: two workers end the wait.
SLEEP = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(8), 0

    def __len__(self):
        return 100

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 2)
    waited_s, start_s = 0.0, time.perf_counter()
    for x, y in DataLoader(Slow(), batch_size=4, num_workers=int(sys.argv[1])):
        waited_s += time.perf_counter() - start_s
        torch.nn.functional.cross_entropy(model(x), y).backward()
        time.sleep(0.06)
        start_s = time.perf_counter()
    print(f"waited {waited_s:.4f}")
"""
COLLATE = """
import time
import torch
from torch.utils.data import DataLoader

def collate(samples):
    time.sleep(0.06)
    return torch.tensor(samples)

weight = torch.nn.Parameter(torch.ones(1))
for batch in DataLoader(range(80), batch_size=2, collate_fn=collate):
    (weight * batch.sum()).backward()
"""
MATMUL = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.randn(700, 700))
optimizer = torch.optim.SGD([weight], lr=1e-6)
for (x,) in DataLoader(TensorDataset(torch.randn(20, 700)), batch_size=1):
    y = (weight.detach() @ weight.detach()) @ weight.detach()
    (weight.sum() * 0 + y.sum() * 0 * weight.mean()).backward()
    optimizer.step()
"""
ENDLESS = """
import os, time
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 4)
start_s, is_told = time.monotonic(), False
while True:
    for (x,) in DataLoader(TensorDataset(torch.ones(64, 4)), batch_size=8):
        model(x).sum().backward()
        time.sleep(0.01)
        if time.monotonic() > start_s + 2.5 and not is_told:
            is_told = True
            print(os.getpid(), flush=True)
"""


def _profiled(pttool: Pttool, folder: Path, script: str, *words: str) -> tuple[Any, Completed]:
    (folder / "train.py").write_text(script)
    done = pttool("profile", "--json", "profile.json", "--force", "train.py", *words)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "profile.json").read_text()), done


def _findings(document: Any) -> dict[str, Any]:
    return {finding["code"]: finding for finding in document["summary"]["findings"]}


def test_planted_sleep_and_the_workers_that_end_its_wait(pttool: Pttool, tmp_path: Path) -> None:
    document, done = _profiled(pttool, tmp_path, SLEEP, "0")
    summary, found = document["summary"], _findings(document)
    waited_s = float(done.stdout.removeprefix("waited "))
    assert summary["phases_s"]["data_wait"] == pytest.approx(waited_s, rel=0.02)
    assert sum(summary["phases_s"].values()) == pytest.approx(summary["wall_s"], rel=1e-3)
    assert summary["hot_lines"][0]["line"] == 8
    assert summary["hot_lines"][0]["file"].endswith("train.py")
    assert "train.py:8" in found["data-loading-bound"]["text"]
    assert found["data-loading-bound"]["fraction"] == summary["steady"]["data_wait_fraction"]
    assert summary["loader"]["sample_ms"] == pytest.approx(20, rel=0.2)
    assert summary["loader"]["workers_needed"] == 2
    assert "data-loading-bound" in done.stderr

    document, done = _profiled(pttool, tmp_path, SLEEP, "2")
    assert document["summary"]["loader"]["processes"] == 2
    assert document["summary"]["steady"]["data_wait_fraction"] < 0.1
    assert "data-loading-bound" not in _findings(document)


def test_planted_collate(pttool: Pttool, tmp_path: Path) -> None:
    document, _ = _profiled(pttool, tmp_path, COLLATE)
    found = _findings(document)
    assert found["slow-collate"]["fraction"] > 0.9
    assert document["summary"]["hot_lines"][0]["function"] == "collate"
    assert document["summary"]["hot_lines"][0]["line"] == 7


def test_planted_matmul_in_every_document(pttool: Pttool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MATMUL)
    files = {"csv": "ops.csv", "html": "a.html", "trace": "trace.json.gz", "flame": "flame.svg"}
    options = [f"--{option}={file}" for option, file in {"json": "profile.json", **files}.items()]
    done = pttool("profile", *options, "--shapes", "--memory", "--windows", "2", "train.py")
    assert (done.returncode, done.stdout) == (0, "")
    document = json.loads((tmp_path / "profile.json").read_text())
    summary, ops = document["summary"], document["items"]
    assert (ops[0]["name"], ops[0]["calls"]) == ("aten::mm", 2 * summary["window_steps"])
    assert ops[0]["shapes"][:2] == [[700, 700], [700, 700]]
    assert ops[0]["self_ms"] > 0.6 * sum(each["self_ms"] for each in ops)
    assert summary["steady"]["data_wait_fraction"] < 0.05
    assert "data-loading-bound" not in _findings(document)

    with (tmp_path / "ops.csv").open() as stream:
        assert [row["name"] for row in csv.DictReader(stream)] == [each["name"] for each in ops]
    trace = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    products = [each for each in trace["traceEvents"] if each["name"] == "aten::mm"]
    assert len(products) == ops[0]["calls"]
    page = (tmp_path / "a.html").read_text()
    assert "aten::mm" in page
    assert not re.search(r"(src|href)=|@import|url\(", page), "nothing is loaded from elsewhere"
    assert (tmp_path / "flame.svg").read_text().startswith("<svg")


@pytest.fixture
def endless(tmp_path: Path, environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """A profile of an endless training, in a process group of its own, after a while of it."""
    (tmp_path / "train.py").write_text(ENDLESS)
    words = [sys.executable, "-m", "pttool", "profile", "--json", "profile.json", "train.py"]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        yield process
        process.kill()


def test_ctrl_c_still_reports(endless: "subprocess.Popen[str]", tmp_path: Path) -> None:
    assert endless.stdout is not None
    endless.stdout.readline()
    os.killpg(endless.pid, signal.SIGINT)
    _, stderr = endless.communicate(timeout=60)
    assert endless.returncode == 130
    assert stderr.startswith("Traceback (most recent call last):")
    assert "KeyboardInterrupt\n\ntrain.py: " in stderr
    summary = json.loads((tmp_path / "profile.json").read_text())["summary"]
    assert (summary["interrupted"], summary["final"], summary["exit_code"]) == (True, True, 130)
    assert summary["steps"] >= 1


def test_a_kill_still_reports(endless: "subprocess.Popen[str]", tmp_path: Path) -> None:
    assert endless.stdout is not None
    os.kill(int(endless.stdout.readline()), signal.SIGKILL)
    _, stderr = endless.communicate(timeout=60)
    assert endless.returncode == 137
    assert "killed, so its last 2 s may be missing" in stderr
    summary = json.loads((tmp_path / "profile.json").read_text())["summary"]
    assert (summary["interrupted"], summary["final"], summary["exit_code"]) == (False, False, 137)
    assert summary["steps"] >= 1
    assert sum(summary["phases_s"].values()) == pytest.approx(summary["wall_s"], rel=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json", "no/folder.json"], ["no/folder.json", "mkdir"]),
        (["--csv", "."], [".: is a folder"]),
        (["--json", "-"], ["--json -", "the script's"]),
        (["--html", "train.py", "--force"], ["train.py: is an input"]),
        (["--html", "old.html"], ["old.html: already exists", "--force"]),
        (["--trace", "trace.gz"], ["trace.gz: the suffix names no format", ".json.gz"]),
        (["--flame", "flame.png"], ["flame.png", ".folded"]),
        (["--json", "a", "--csv", "a"], ["two documents have one name"]),
        (["--window", "3"], ["--window 3", "SKIP:STEPS"]),
        (["--window", "5:0"], ["--window 5:0"]),
        (["--hz", "-1"], ["--hz"]),
        (["--tp", "3"], ["no such option", "--top"]),
    ],
    ids=" ".join,
)
def test_nothing_runs_on_a_wrong_line(
    pttool: Pttool, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    (tmp_path / "old.html").touch()
    assert_refused(pttool("profile", *options, "train.py"), 2, *words)


def test_options_behind_the_script_are_its_own(pttool: Pttool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    (tmp_path / "model").write_text("print('a script')\n")
    for words in (["train.py", "--json", "x"], ["train.py", "--", "--json", "x"]):
        assert pttool("profile", "-q", *words).stdout == "['--json', 'x']\n"
    assert pttool("profile", "-q", "train.py", "--", "--", "x").stdout == "['--', 'x']\n"
    assert pttool("profile", "./model").stdout == "a script\n"
    assert_refused(pttool("profile", "model"), 2, "missing argument 'MODEL'", "profile model")


def test_a_script_without_training_says_so(pttool: Pttool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    done = pttool("profile", "train.py")
    assert (done.returncode, done.stdout) == (3, "")
    assert "0 steps, exit code 3" in done.stderr
    assert "too-short: no training step was seen" in done.stderr
