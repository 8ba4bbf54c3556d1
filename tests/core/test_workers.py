"""Worker processes: every task is done once, and no process outlives its use."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from pttool.core.workers import WorkerDied, Workers

DEADLINE_S = 30


def _square(number: int) -> int:
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    if number < 0:
        raise ZeroDivisionError
    return number * number


def _wait(path: Path) -> None:
    path.with_suffix(f".{os.getpid()}").touch()
    time.sleep(DEADLINE_S)


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_each_task_is_done_once(processes: int) -> None:
    results = list(Workers(_square, processes).results(range(7)))
    assert sorted(results) == [(number, number**2) for number in range(7)]
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_takes_one_task_with_it() -> None:
    results = dict(Workers(_square, 2).results([1, 13, 2, 13, 3, 4]))
    assert [results[number] for number in (0, 2, 4, 5)] == [1, 4, 9, 16]
    assert isinstance(results[1], WorkerDied)
    assert isinstance(results[3], WorkerDied)


def test_an_exception_in_a_worker_is_a_bug(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="worker failed"):
        list(Workers(_square, 2).results([1, -1, 2]))
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert multiprocessing.active_children() == []


def test_workers_end_when_their_results_are_left(tmp_path: Path) -> None:
    results = Workers(_square, 2).results([1, 2, 3, 4])
    next(results)
    results.close()
    assert multiprocessing.active_children() == []


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    task = tmp_path / "task"
    parent = multiprocessing.get_context("fork").Process(target=_parent, args=(task,))
    parent.start()
    deadline = time.monotonic() + DEADLINE_S
    while len(started := [int(path.suffix[1:]) for path in tmp_path.iterdir()]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    parent.kill()
    parent.join()
    while any(_is_alive(process) for process in started):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _parent(task: Path) -> None:
    list(Workers(_wait, 2).results([task, task]))


def _is_alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
