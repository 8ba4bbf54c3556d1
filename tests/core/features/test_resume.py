"""A run killed at any moment goes on by the same command, to the same bits, and leaves no trace."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PTTOOL
from tests.core.features.small import made, tree

PARTS, ROOT = 20, Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures for PARTS parts, and what an uninterrupted run makes of them, in `whole`."""
    folder = made(tmp_path_factory.mktemp("resume"), 8 * PARTS, broken=[9, 70])
    with begun(folder, "whole") as process:
        process.communicate()
    assert process.returncode == 3
    return folder


def begun(folder: Path, out: str, *options: str) -> "subprocess.Popen[str]":
    """Start the command, with parts of 8 pictures."""
    command = [
        PTTOOL, "features", "extract", "net.py:Net", "pictures", "-l", "conv,head", "-o", out,
        "--batch-size", "4", "--part-size", "8", "--merge", "--json", *options,
    ]  # fmt: skip
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def killed(folder: Path, out: str, after_parts: int, seconds: float) -> None:
    """Run until some parts are finished, or it ends, and kill it a moment later."""
    with begun(folder, out, "-j", "2") as process:
        while process.poll() is None and finished(folder / out) < after_parts:
            time.sleep(0.001)
        time.sleep(seconds)
        process.kill()


def finished(out: Path) -> int:
    """Return how many parts are finished."""
    return len(list(out.glob("part-*.json")))


def ended_whole(folder: Path, out: str) -> int:
    """Run to the end, compare with the uninterrupted run, and return how many parts were there."""
    with begun(folder, out, "-j", "2") as process:
        stdout, _ = process.communicate()
    assert process.returncode == 3
    assert tree(folder / out) == tree(folder / "whole")
    return int(json.loads(stdout)["summary"]["parts_reused"])


def test_kill_9_and_the_same_command_give_the_same_bits(folder: Path) -> None:
    killed(folder, "killed", 3, 0.02)
    before = finished(folder / "killed")
    assert before >= 3
    killed(folder, "killed", before + 4, 0.05)
    assert ended_whole(folder, "killed") >= 7


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(20))
def test_kill_9_at_random_moments(folder: Path, seed: int) -> None:
    moments = random.Random(seed)
    for _ in range(moments.randint(1, 3)):
        killed(folder, f"random-{seed}", moments.randint(0, PARTS - 1), moments.uniform(0, 0.3))
    ended_whole(folder, f"random-{seed}")


def test_a_kill_at_each_rename_leaves_what_can_be_gone_on_with(tmp_path: Path) -> None:
    made(tmp_path, 10, broken=[2])
    module = "tests.core.features.killed_writes"
    subprocess.run([sys.executable, "-m", module, str(tmp_path)], cwd=ROOT, check=True)
    kills = sorted(tmp_path.glob("killed-*"))
    # 3 parts of 2 layers and a record, the manifest twice, ids, failures, and 2 joined files
    assert len(kills) == 3 * 3 + 6 + 1
    whole = tree(tmp_path / "whole")
    assert [kill.name for kill in kills if tree(kill) != whole] == []


def test_ctrl_c_ends_all_processes_and_leaves_finished_parts_alone(folder: Path) -> None:
    with begun(folder, "interrupted", "-j", "2") as process:
        while finished(folder / "interrupted") < 2:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGINT)
        stdout, _ = process.communicate()
    assert process.returncode == 130
    assert stdout == ""
    assert not list((folder / "interrupted").glob(".*"))
    assert ended_whole(folder, "interrupted") >= 2
