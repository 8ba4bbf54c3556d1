"""Processes as /proc shows them, compared with how they were started."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pttool.core.gpu.holders import Holders, find_holders
from pttool.core.gpu.proc import (
    ancestors,
    is_in_container,
    is_orphan,
    pids,
    read_process,
    started_at,
)
from tests.fakes.processes import NOBODY, Processes, as_nobody, entry, needs_root


def test_a_process_is_described_as_it_was_started(processes: Processes) -> None:
    before = time.time()
    process = processes.start()
    assert process.pid in pids()
    assert (process.parent, process.uid) == (os.getpid(), os.getuid())
    assert process.session == process.pid == process.group
    assert process.command.startswith(f"{sys.executable} -S -c")
    assert process.command.endswith("polite")
    # btime is in whole seconds, ticks are hundredths.
    assert before - 1.1 <= started_at(process) <= time.time() + 1.1
    assert process.namespace == entry(os.getpid()).namespace


def test_names_that_look_like_the_fields_behind_them(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as running:
        found = read_process(running.pid)
        while found is not None and found.name != program.name:  # until it has called exec
            found = read_process(running.pid)
        assert found is not None
        assert found.parent == os.getpid()
        assert found.command == f"{program} 60"
        running.kill()


def test_what_is_no_process_here() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        assert Path(f"/proc/{thread.native_id}").is_dir()
        assert read_process(thread.native_id) is None
    finally:
        stop.set()
        thread.join()
    for pid in (0, -1, 2**22 + 1, 2**32 - 1, 999_999_999_999):
        assert read_process(pid) is None


def test_the_ancestors_of_a_process_end_at_the_first() -> None:
    code = "import os; from pttool.core.gpu.proc import ancestors; print(*ancestors(os.getpid()))"
    command = ["sh", "-c", f"{sys.executable} -c '{code}'; :"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as shell:
        output, _ = shell.communicate()
    assert {shell.pid, os.getpid(), os.getppid()} <= set(map(int, output.split()))
    assert ancestors(1) == set()


def test_a_forked_worker_of_a_killed_run_is_an_orphan(processes: Processes) -> None:
    assert is_orphan(processes.orphan())
    assert not is_orphan(processes.start())
    assert not is_orphan(entry(os.getpid()))
    assert not is_orphan(entry(1))


def test_a_container_is_told_by_its_pid_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = tmp_path / "proc/self/ns"
    namespace.mkdir(parents=True)
    monkeypatch.setenv("PTTOOL_SYSROOT", str(tmp_path))
    assert not is_in_container()
    (namespace / "pid").symlink_to("pid:[4026532281]")
    assert is_in_container()
    (namespace / "pid").unlink()
    (namespace / "pid").symlink_to("pid:[4026531836]")  # of every Linux
    assert not is_in_container()


def test_open_devices_are_found_in_every_process(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = tmp_path / "dev"
    (devices / "nvidia-caps").mkdir(parents=True)
    names = ("nvidia1", "nvidiactl", "nvidia-caps/nvidia-cap21", "nvidia10", "null")
    for name in names:
        (devices / name).touch()
    monkeypatch.setenv("PTTOOL_SYSROOT", str(tmp_path))
    run = processes.start(opens=[devices / name for name in names])
    worker = processes.orphan(opens=[devices / "nvidia1"])
    (devices / "nvidia1").unlink()  # as a driver that is loaded again does
    with (devices / "nvidia10").open():  # pttool's own are no finding
        holders = find_holders()
    found = {holder.process.pid: holder for holder in holders.found}
    assert found[run.pid].devices == (
        "nvidia-caps/nvidia-cap21", "nvidia1", "nvidia10", "nvidiactl",
    )  # fmt: skip
    assert found[run.pid].minors == (1, 10)
    assert {holder.process.pid for holder in holders.of_minor(1)} == {run.pid, worker.pid}
    assert [holder.process.pid for holder in holders.of_minor(10)] == [run.pid]
    assert os.getpid() not in found


@needs_root
def test_descriptors_of_other_users_are_counted_as_not_looked_into(processes: Processes) -> None:
    processes.start()
    assert int(as_nobody(lambda: find_holders().unreadable)) > 0
    assert processes.of_nobody().user in ("nobody", str(NOBODY))


@pytest.mark.parametrize(
    ("user", "count", "words"),
    [
        (1000, 1, "1 process of other users can't be looked into for open devices: run it as root"),
        (0, 2, "2 processes can't be looked into for open devices: even root needs CAP_SYS_PTRACE"),
    ],
)
def test_what_helps_to_look_into_all(
    monkeypatch: pytest.MonkeyPatch, user: int, count: int, words: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert (Holders((), count).note or "").startswith(words)
    assert Holders((), 0).note is None
