"""Run pttool as its users do: as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest

# No test sees a GPU, not even torch in a process that another test has given the fake driver.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
PTTOOL = str(Path(sys.executable).with_name("pttool"))
Completed = subprocess.CompletedProcess[str]


class Pttool(Protocol):
    """Runs one command line and returns what came out of it."""

    def __call__(self, *args: str) -> Completed: ...


class Program(Protocol):
    """Runs the installed program itself, where the environment matters."""

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Completed: ...


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment without what changes output."""
    hidden = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING", "PTTOOL_DEBUG")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {
        **kept,
        "PYTHONUTF8": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "PATH": f"{Path(PTTOOL).parent}:{os.environ['PATH']}",
    }


@pytest.fixture
def program(tmp_path: Path, environment: dict[str, str]) -> Program:
    """Run the installed `pttool` in an empty folder."""

    def run(*args: str, env: Mapping[str, str] | None = None) -> Completed:
        return subprocess.run(
            [PTTOOL, *args],
            cwd=tmp_path,
            env={**environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def forkserver(environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """A process that has imported torch and forks one for each command."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.forkserver"],
        env={**environment, "COLUMNS": "80"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as server:
        yield server


@pytest.fixture
def pttool(tmp_path: Path, forkserver: "subprocess.Popen[str]") -> Pttool:
    """Run `pttool` in an empty folder, without waiting for torch's import each time."""
    results = tmp_path.parent / f"{tmp_path.name}-output"
    results.mkdir()

    def run(*args: str) -> Completed:
        return forked(forkserver, args, tmp_path, results)

    return run


def forked(
    server: "subprocess.Popen[str]",
    args: Sequence[str],
    cwd: Path,
    results: Path,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Have a fork server run one command line; `results` is a folder for what comes out of it."""
    assert server.stdin is not None
    assert server.stdout is not None
    stdout, stderr = results / "stdout", results / "stderr"
    request = {
        "args": list(args),
        "cwd": str(cwd),
        "stdout": str(stdout),
        "stderr": str(stderr),
        "env": dict(env or {}),
    }
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    code = int(server.stdout.readline())
    return subprocess.CompletedProcess(
        ["pttool", *args], code, stdout.read_bytes().decode(), stderr.read_bytes().decode()
    )


def assert_refused(done: Completed, code: int, *words: str) -> None:
    """Assert the form of every failure: an exit code, an empty stdout, one or two lines."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("pttool: error: "), done.stderr
    assert all(line.startswith("hint: ") for line in lines[1:]), done.stderr
    assert len(lines) <= 2, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
