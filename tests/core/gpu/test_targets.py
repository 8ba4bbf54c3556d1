"""Whom `kill` may end: never a PID that isn't on the list, nor one that only looks like it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pttool.core.gpu import targets
from pttool.core.gpu.holders import find_holders
from pttool.core.gpu.kill import kill
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.targets import find_targets, refusal
from tests.fakes.nvml.fixtures import Machine
from tests.fakes.nvml.scenarios import gpu, machine
from tests.fakes.processes import Processes, as_nobody, entry, needs_root

NEVER = (0, 1, 2**32 - 1)


def _target(pid: int) -> targets.Target:
    snapshot = take_snapshot()
    found = find_targets(snapshot.gpus, snapshot, find_holders(), everywhere=True)
    return next(each for each in found if each.pid == pid)


@needs_root
def test_only_root_may_end_another_users_process(
    machine_here: Machine, processes: Processes
) -> None:
    own, other = processes.start(), processes.of_nobody()
    machine_here(machine([gpu(0, procs=f"{own.pid}:10,{other.pid}:10")]))
    mine, theirs = _target(own.pid), _target(other.pid)
    assert refusal(mine) is refusal(theirs) is None
    assert b"belongs to root" in as_nobody(lambda: refusal(mine))
    assert as_nobody(lambda: refusal(theirs)) == b"None"


def test_in_a_container_a_pid_of_the_host_may_be_another_process_here(
    machine_here: Machine,
    processes: Processes,
    sysroot: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (sysroot / "dev").mkdir()
    (sysroot / "dev/nvidia0").touch()
    innocent = processes.start()
    job = processes.start(opens=[sysroot / "dev/nvidia0"])
    machine_here(machine([gpu(0, procs=f"{innocent.pid}:10,{job.pid}:10")]))
    monkeypatch.setenv("PTTOOL_SYSROOT", str(sysroot))
    monkeypatch.setattr(targets, "is_in_container", lambda: False)
    assert refusal(_target(innocent.pid)) is None
    monkeypatch.setattr(targets, "is_in_container", lambda: True)
    assert "another PID namespace" in (refusal(_target(innocent.pid)) or "")
    assert refusal(_target(job.pid)) is None
    (sysroot / "dev/nvidia0").unlink()  # nothing is left to tell by, as in a test
    assert refusal(_target(innocent.pid)) is None


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The PIDs that would be signalled: none is."""
    opened: list[int] = []

    def note(pid: int) -> int:
        opened.append(pid)
        raise ProcessLookupError

    def fail(*args: object) -> None:
        pytest.fail(f"a signal: {args}")

    monkeypatch.setattr(os, "pidfd_open", note)
    for function in ("pidfd_send_signal", "raise_signal"):
        monkeypatch.setattr(signal, function, fail)
    for function in ("kill", "killpg"):
        monkeypatch.setattr(os, function, fail)
    return opened


@pytest.fixture(scope="module")
def living() -> Iterator[list[int]]:
    """The PIDs of processes that may be listed or not."""
    processes = Processes()
    yield [processes.start().pid for _ in range(4)]
    processes.end_all()


def test_fuzzed_records_never_lead_to_a_pid_outside_the_list(
    machine_here: Machine, signalled: list[int], living: list[int]
) -> None:
    never = [*NEVER, os.getpid(), os.getppid()]
    pids = st.one_of(
        st.sampled_from([*living, *never]), st.integers(0, 2**32 - 1), st.integers(0, 40_000)
    )
    records = st.lists(st.tuples(pids, st.integers(0, 2**44)), max_size=6)
    kinds = st.fixed_dictionaries({"procs": records, "gprocs": records})

    @settings(max_examples=150, deadline=None)
    @given(listed=kinds, wide=st.booleans(), ghosts=st.booleans())
    def check(listed: dict[str, list[tuple[int, int]]], wide: bool, ghosts: bool) -> None:
        fields = {
            kind: ",".join(f"{pid}:{size}" for pid, size in found) for kind, found in listed.items()
        }
        true = {pid for found in listed.values() for pid, _ in found}
        system = {f"ghost_{pid}": 1 for pid in true if ghosts}
        machine_here(machine([gpu(0, stride32=int(wide), **fields)], **system))
        signalled.clear()
        kill(grace_s=0, confirm=lambda plan: True)
        assert set(signalled) <= true - set(never)

    check()


def test_records_of_a_broken_driver_end_the_right_processes(
    machine_here: Machine, signalled: list[int], living: list[int]
) -> None:
    listed = ",".join(f"{pid}:{1000 + place}" for place, pid in enumerate(living[:3]))
    machine_here(machine([gpu(0, procs=listed, stride32=1)]))
    kill(grace_s=0, confirm=lambda plan: True)
    assert sorted(signalled) == sorted(living[:3])
    assert entry(living[3]).pid not in signalled
