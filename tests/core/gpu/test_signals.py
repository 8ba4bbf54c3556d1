"""Ending real processes: polite, stubborn, stopped, another user's, and a PID that was re-used."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pttool.core.gpu.proc import ProcessEntry, is_orphan
from pttool.core.gpu.signals import Outcome, end
from pttool.errors import UnavailableError
from tests.fakes.processes import Processes, as_nobody, entry, needs_root


def test_each_process_ends_by_the_mildest_signal_that_it_obeys(processes: Processes) -> None:
    polite, stubborn, stopped = (processes.start(kind) for kind in ("polite", "stubborn", "polite"))
    os.kill(stopped.pid, signal.SIGSTOP)
    bystander = processes.start()
    assert end([polite, stubborn, stopped], grace_s=0.5) == {
        polite.pid: Outcome.TERMINATED,
        stubborn.pid: Outcome.KILLED,
        stopped.pid: Outcome.TERMINATED,
    }
    assert processes.exit_code(polite) == -signal.SIGTERM
    assert processes.exit_code(stubborn) == -signal.SIGKILL
    assert processes.exit_code(stopped) == -signal.SIGTERM
    assert processes.is_alive(bystander)


def test_a_worker_that_a_killed_run_left_behind(processes: Processes) -> None:
    worker = processes.orphan()
    assert is_orphan(worker)
    assert end([worker], grace_s=5) == {worker.pid: Outcome.TERMINATED}
    assert not processes.is_alive(worker)


@needs_root
def test_a_pid_that_was_given_to_another_process(processes: Processes) -> None:
    seen = processes.start()
    assert end([seen], grace_s=5) == {seen.pid: Outcome.TERMINATED}
    processes.exit_code(seen)
    other = _process_with_pid(seen.pid)
    try:
        assert end([seen], grace_s=5) == {seen.pid: Outcome.REUSED}
        assert processes.is_alive(other)
    finally:
        os.kill(other.pid, signal.SIGKILL)
        os.waitpid(other.pid, 0)


def test_a_pid_that_began_at_another_time_is_not_signalled(processes: Processes) -> None:
    process = processes.start()
    seen = replace(process, started_ticks=process.started_ticks - 1)
    assert end([seen], grace_s=0) == {process.pid: Outcome.REUSED}
    assert processes.is_alive(process)


def test_a_process_that_has_ended_already(processes: Processes) -> None:
    zombie = processes.start()
    os.kill(zombie.pid, signal.SIGKILL)
    while not entry(zombie.pid).has_ended:
        time.sleep(0.01)
    assert end([zombie], grace_s=0) == {zombie.pid: Outcome.GONE}
    processes.exit_code(zombie)
    assert end([zombie], grace_s=0) == {zombie.pid: Outcome.GONE}


def test_init_pttool_and_what_it_runs_under_are_never_signalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sent(*args: object) -> None:
        pytest.fail(f"a signal: {args}")

    monkeypatch.setattr(signal, "pidfd_send_signal", sent)
    own = [entry(pid) for pid in {1, os.getpid(), os.getppid()}]
    impossible = [replace(own[0], pid=pid) for pid in (0, -1)]
    assert set(end([*own, *impossible], grace_s=0).values()) == {Outcome.FORBIDDEN}


@needs_root
def test_another_users_process_is_left_alone(processes: Processes) -> None:
    process = processes.start()
    assert as_nobody(lambda: end([process], grace_s=0)[process.pid].value) == b"'not_permitted'"
    assert processes.is_alive(process)


def test_without_pidfds_nothing_is_signalled(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    process = processes.start()
    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(UnavailableError, match="pidfd"):
        end([process], grace_s=0)
    assert processes.is_alive(process)


def _process_with_pid(pid: int) -> ProcessEntry:
    """Fork until the kernel gives this PID again."""
    for _ in range(1000):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        if child == pid:
            return entry(pid)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    pytest.skip("other processes take every PID")
