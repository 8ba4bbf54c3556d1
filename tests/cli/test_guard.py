"""Every way a run can end: closed pipes, full disks, Ctrl-C, bugs, wrong command lines."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PTTOOL, Pttool, assert_refused

NET = """
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.ModuleList([nn.Linear(1, 1) for _ in range(2000)])
    def forward(self, x):
        return x
"""
SMALL = ["--help"]
LARGE = ["model", "params", "net.py:Net", "--csv"]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A model whose listing is larger than a pipe's 64 KiB."""
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("reader", ["head -1", "true"])
@pytest.mark.parametrize(
    "args",
    [SMALL, LARGE, ["--version"], ["model", "--help"]],
    ids=["help", "large", "version", "noun"],
)
def test_a_closed_pipe_is_a_silent_success(
    net: Path, environment: dict[str, str], args: list[str], reader: str, unbuffered: str
) -> None:
    script = f'"$0" "$@" | {reader} >/dev/null; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", script, PTTOOL, *args],
        cwd=net,
        env={**environment, "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("args", [SMALL, LARGE, ["--version"]], ids=["help", "large", "version"])
def test_a_full_disk_is_one_line(net: Path, environment: dict[str, str], args: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [PTTOOL, *args], cwd=net, env=environment, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 4
    assert done.stderr == b"pttool: error: standard output: No space left on device\n"


@pytest.mark.parametrize("target", ["2>&1 | true", "2>/dev/full", "2>&-"])
def test_a_stderr_that_takes_nothing_changes_no_exit_code(
    environment: dict[str, str], target: str
) -> None:
    script = f'"$0" modle {target}; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", script, PTTOOL],
        env={**environment, "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert done.stdout == "2\n"


def test_a_closed_stdout_is_no_failure(environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", '"$0" --help >&-', PTTOOL], env=environment, stderr=subprocess.PIPE
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_ends_without_a_traceback(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\ndef net():\n    open('started', 'w').close()\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [PTTOOL, "model", "params", "slow.py:net"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130


@pytest.mark.parametrize(("debug", "traceback"), [("", False), ("1", True)])
def test_a_bug_is_one_line_and_a_traceback_only_on_demand(
    environment: dict[str, str], debug: str, traceback: bool
) -> None:
    broken = "import sys; from pttool.guard import guarded; sys.exit(guarded(lambda: 1 // 0))"
    done = subprocess.run(
        [sys.executable, "-c", broken],
        env={**environment, "PTTOOL_DEBUG": debug},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 70
    assert "pttool: error: a bug in pttool: ZeroDivisionError" in done.stderr
    assert ("Traceback" in done.stderr) == traceback


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["modle"], ["'modle'", "Did you mean 'model'?"]),
        (["model", "summery"], ["'summery'", "Did you mean 'summary'?"]),
        (["--nonsense"], ["--nonsense"]),
        (["model", "summary"], ["MODEL"]),
        (["model", "summary", "resnet18", "--dpeth", "1"], ["--dpeth", "'--depth'"]),
        (["model", "summary", "resnet18", "--mode", "fast"], ["'fast'", "'eval', 'train'"]),
        (["model", "summary", "resnet18", "-b", "0"], ["--batch"]),
        (["model", "summary", "resnet18", "left", "over"], ["left"]),
        (["model", "summary", "resnet18", "--json", "--csv"], ["json", "csv"]),
        (["model", "params", "resnet18", "--json", "--no-header"], ["--no-header"]),
        (["model", "params", "resnet18", "-o", "there/is/none.csv"], ["there/is/none.csv"]),
        (["model", "params", "resnet18", "-o", "picture.bmp"], ["picture.bmp", ".json"]),
        (["model", "params", "resnet18", "-o", "x.csv", "--json"], ["json", "csv"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_usage_errors_are_one_line_and_a_hint(
    pttool: Pttool, args: list[str], words: list[str]
) -> None:
    assert_refused(pttool(*args), 2, *words)


def test_an_existing_output_is_kept_without_force(pttool: Pttool, net: Path) -> None:
    kept = net / "out.csv"
    kept.write_text("mine")
    assert_refused(pttool(*LARGE[:-1], "-o", "out.csv"), 2, "out.csv", "--force")
    assert kept.read_text() == "mine"
    kept.chmod(0o640)
    assert pttool(*LARGE[:-1], "-o", "out.csv", "--force").returncode == 0
    assert kept.read_text().startswith("name,shape,dtype,numel")
    assert kept.stat().st_mode & 0o777 == 0o640


def test_nothing_half_written_stays_behind(net: Path, environment: dict[str, str]) -> None:
    """A file size limit stands in for a full disk: the write fails half-way."""
    done = subprocess.run(
        [
            "bash",
            "-c",
            'trap "" XFSZ; ulimit -f 8; "$0" "$@"',
            PTTOOL,
            *LARGE[:-1],
            "-o",
            "out.csv",
        ],
        cwd=net,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert_refused(done, 4, "out.csv", "File too large")
    assert sorted(os.listdir(net)) == ["net.py"]
