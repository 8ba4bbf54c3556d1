"""`pttool gpu kill` on real processes that the fake NVML lists."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.conftest import PTTOOL, Completed, assert_refused
from tests.fakes.nvml.fixtures import Gpu, Machine
from tests.fakes.nvml.scenarios import gpu, machine, mig, mig_uuid
from tests.fakes.processes import Processes, needs_root

GHOST = 999991


def _items(done: Completed, code: int = 0) -> dict[int, dict[str, Any]]:
    assert done.returncode == code, done.stderr
    return {item["pid"]: item for item in json.loads(done.stdout)["items"]}


@pytest.fixture
def devices(sysroot: Path) -> Path:
    """The folder /dev of a machine with two GPUs."""
    folder = sysroot / "dev"
    folder.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (folder / name).touch()
    return folder


@pytest.fixture
def sees_devices(sysroot: Path) -> dict[str, str]:
    """The environment in which pttool sees that /dev."""
    return {"PTTOOL_SYSROOT": str(sysroot)}


def test_the_processes_on_a_gpu_end_and_others_live(pttool_gpu: Gpu, processes: Processes) -> None:
    polite, stubborn = processes.start(), processes.start("stubborn")
    neighbour, bystander = processes.start(), processes.start()
    scenario = machine([
        gpu(0, procs=f"{polite.pid}:1000,{stubborn.pid}:2000"), gpu(1, procs=f"{neighbour.pid}:5")
    ])  # fmt: skip
    done = pttool_gpu(scenario, "kill", "-i", "0", "--grace", "0.3", "--yes", "--json")
    items = _items(done)
    assert {pid: item["outcome"] for pid, item in items.items()} == {
        polite.pid: "ended_by_sigterm",
        stubborn.pid: "ended_by_sigkill",
    }
    assert items[stubborn.pid]["memory_bytes"] == 2000 << 20
    assert items[stubborn.pid]["command"] == stubborn.command
    assert json.loads(done.stdout)["summary"] == {"processes": 2, "ended": 2, "refused": 0}
    assert processes.is_alive(neighbour)
    assert processes.is_alive(bystander)


@pytest.mark.parametrize("grace", ["nan", "inf", "1e9", "3000000", "-1"])
@pytest.mark.parametrize("verb", [["kill"], ["reset", "--kill"]])
def test_a_grace_that_can_not_be_waited_for_signals_nobody(
    pttool_gpu: Gpu, processes: Processes, verb: list[str], grace: str
) -> None:
    process = processes.start()
    scenario = machine([gpu(0, procs=f"{process.pid}:1000")])
    done = pttool_gpu(scenario, *verb, "-i", "0", "--grace", grace, "--yes")
    assert_refused(done, 2, "--grace")
    assert processes.is_alive(process)


@pytest.mark.parametrize("options", [[], ["--dry-run", "--yes"]])
def test_without_a_terminal_and_without_yes_nothing_is_signalled(
    pttool_gpu: Gpu, processes: Processes, options: list[str]
) -> None:
    process = processes.start()
    done = pttool_gpu(machine([gpu(0, procs=f"{process.pid}:10")]), "kill", *options, "--json")
    assert _items(done)[process.pid]["outcome"] == "would_end"
    assert "nothing was signalled" in done.stderr
    assert processes.is_alive(process)


@pytest.mark.parametrize(("answer", "lives"), [("n", True), ("", True), ("y", False)])
def test_a_terminal_is_asked(
    machine_environment: Machine, processes: Processes, answer: str, lives: bool
) -> None:
    process = processes.start()
    environment = machine_environment(machine([gpu(0, procs=f"{process.pid}:10")]))
    child = pexpect.spawn(PTTOOL, ["gpu", "kill"], env={**os.environ, **environment})
    child.expect(f"PID {process.pid} is on GPU 0")
    child.expect_exact("[y/N]")
    assert processes.is_alive(process)
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert processes.is_alive(process) is lives


def test_a_process_of_another_namespace(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0, procs=f"{GHOST}:17000")], **{f"ghost_{GHOST}": 1})
    done = pttool_gpu(scenario, "kill", "--yes", "--json")
    item = _items(done, 4)[GHOST]
    assert (item["outcome"], item["user"], item["command"]) == ("refused", None, None)
    assert "another PID namespace" in done.stderr


def test_init_pttool_itself_and_what_it_runs_under(
    machine_environment: Machine, environment: dict[str, str], processes: Processes
) -> None:
    process = processes.start()
    # This process, its parent, the first process, and the shell that becomes pttool.
    above = {1, os.getpid(), os.getppid()}
    listed = ",".join(f"{pid}:10" for pid in (*above, process.pid))
    fake = machine_environment(machine([gpu(0, procs=f"{listed},SHELL:10")]))
    path = shlex.quote(fake["FAKE_NVML"])
    script = f"sed -i s/SHELL/$$/ {path}; exec {PTTOOL} gpu kill --yes --json"
    done = subprocess.run(
        ["sh", "-c", script],
        env={**environment, **fake},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    items = {pid: item["outcome"] for pid, item in _items(done, 4).items()}
    assert items.pop(process.pid) == "ended_by_sigterm"
    assert len(items.keys() - above) == 1  # pttool's own
    assert above <= items.keys()
    assert set(items.values()) == {"refused"}


def test_a_hidden_orphan_is_ended_where_hidden_ones_are_meant(
    pttool_gpu: Gpu, processes: Processes, devices: Path, sees_devices: dict[str, str]
) -> None:
    worker = processes.orphan(opens=[devices / "nvidia0", devices / "nvidiactl"])
    monitor = processes.start(opens=[devices / "nvidiactl"])
    scenario = machine([gpu(0), gpu(1)])
    done = pttool_gpu(scenario, "kill", "--yes", "--json", env=sees_devices)
    assert _items(done) == {}
    assert "no process to end" in done.stderr
    assert _items(
        pttool_gpu(scenario, "kill", "-i", "1", "--hidden", "--yes", "--json", env=sees_devices)
    ) == {}  # fmt: skip
    assert processes.is_alive(worker)
    done = pttool_gpu(scenario, "kill", "-i", "0", "--hidden", "--yes", "--json", env=sees_devices)
    (item,) = _items(done).values()
    assert (item["pid"], item["gpus"], item["outcome"]) == (worker.pid, [0], "ended_by_sigterm")
    assert (item["hidden"], item["orphan"], item["memory_bytes"]) == (True, True, None)
    assert not processes.is_alive(worker)
    assert processes.is_alive(monitor)


@pytest.mark.parametrize("how", ["--hidden", "--pid"])
def test_who_holds_only_the_driver_open_is_on_no_gpu(
    pttool_gpu: Gpu, processes: Processes, devices: Path, sees_devices: dict[str, str], how: str
) -> None:
    holder = processes.start(opens=[devices / "nvidiactl"])
    scenario = machine([gpu(0), gpu(1)])
    listed = json.loads(pttool_gpu(scenario, "ps", "--json", env=sees_devices).stdout)["items"]
    assert [(row["pid"], row["gpu_index"]) for row in listed] == [(holder.pid, None)]
    named = [how, str(holder.pid)] if how == "--pid" else [how]
    done = pttool_gpu(scenario, "kill", "-i", "0", *named, "--yes", env=sees_devices)
    assert done.returncode == (1 if how == "--pid" else 0)
    assert processes.is_alive(holder)
    done = pttool_gpu(scenario, "kill", *named, "--yes", "--json", env=sees_devices)
    item = _items(done)[holder.pid]
    assert (item["gpus"], item["hidden"], item["outcome"]) == ([], True, "ended_by_sigterm")
    assert not processes.is_alive(holder)


def test_a_job_that_has_its_neighbour_open_is_not_hidden_there(
    pttool_gpu: Gpu, processes: Processes, devices: Path, sees_devices: dict[str, str]
) -> None:
    # CUDA opens every GPU that it sees, and computes on one.
    job = processes.start(opens=[devices / "nvidia0", devices / "nvidia1"])
    scenario = machine([gpu(0, procs=f"{job.pid}:10"), gpu(1)])
    done = pttool_gpu(scenario, "kill", "-i", "1", "--hidden", "--yes", env=sees_devices)
    assert done.returncode == 0
    assert processes.is_alive(job)


def test_one_process_by_its_pid(pttool_gpu: Gpu, processes: Processes) -> None:
    meant, other, elsewhere = (processes.start() for _ in range(3))
    scenario = machine([gpu(0, procs=f"{meant.pid}:10,{other.pid}:10")])
    assert_refused(
        pttool_gpu(scenario, "kill", "--pid", str(elsewhere.pid), "--yes"), 1, "on none of these"
    )
    assert_refused(pttool_gpu(scenario, "kill", "--pid", "1", "--yes"), 2, "--pid")
    done = pttool_gpu(scenario, "kill", "--pid", str(meant.pid), "--yes", "--json")
    assert _items(done)[meant.pid]["outcome"] == "ended_by_sigterm"
    assert processes.is_alive(other)
    assert processes.is_alive(elsewhere)


def test_the_display_is_ended_only_where_it_is_named(
    pttool_gpu: Gpu, processes: Processes, tmp_path: Path
) -> None:
    display = processes.of_program("/bin/sleep", tmp_path / "Xorg")
    scenario = machine([gpu(0, gprocs=f"{display.pid}:10")])
    item = _items(pttool_gpu(scenario, "kill", "--yes", "--json"))[display.pid]
    assert item["outcome"] == "left_alone"
    assert "systemctl" in item["reason"]
    assert processes.is_alive(display)
    assert pttool_gpu(scenario, "kill", "--pid", str(display.pid), "--yes").returncode == 0
    assert not processes.is_alive(display)


def test_processes_in_mig_instances(pttool_gpu: Gpu, processes: Processes) -> None:
    process = processes.start()
    listed = f"{process.pid}:3000:1:0"
    instance = mig(0, 1, 40192, procs=listed)
    scenario = machine([gpu(0, mig="1,1", procs=listed, **instance)])
    item = _items(pttool_gpu(scenario, "kill", "--yes", "--json"))[process.pid]
    assert (item["outcome"], item["memory_bytes"]) == ("ended_by_sigterm", 3000 << 20)


def test_a_mig_instance_alone(
    pttool_gpu: Gpu, processes: Processes, devices: Path, sees_devices: dict[str, str]
) -> None:
    """Its neighbours live, and a holder of the GPU, who may be in any instance."""
    inside, neighbour = processes.start(), processes.start()
    holder = processes.start(opens=[devices / "nvidia0"])
    first, second = f"{inside.pid}:30:1:0", f"{neighbour.pid}:30:5:0"
    instances = {**mig(0, 1, 40192, procs=first), **mig(1, 5, 19968, procs=second)}
    scenario = machine([gpu(0, mig="1,1", procs=f"{first},{second}", **instances)])
    done = pttool_gpu(
        scenario, "kill", "-i", mig_uuid(0), "--hidden", "--yes", "--json", env=sees_devices
    )
    assert set(_items(done)) == {inside.pid}
    assert not processes.is_alive(inside)
    assert processes.is_alive(neighbour)
    assert processes.is_alive(holder)


def test_what_can_not_be_known_is_no_success(pttool_gpu: Gpu, processes: Processes) -> None:
    process = processes.start()
    old = machine([gpu(0, procs="!13", gprocs="!13")])
    assert "driver_too_old" in pttool_gpu(old, "kill", "--yes").stderr
    assert pttool_gpu(old, "kill", "--yes").returncode == 1
    lost = machine([gpu(0, procs=f"{process.pid}:10"), gpu(1, all="!15")])
    done = pttool_gpu(lost, "kill", "--yes", "--json")
    assert _items(done, 1)[process.pid]["outcome"] == "ended_by_sigterm"
    assert "GPU 1 (gpu_lost)" in done.stderr


@needs_root
def test_a_pid_of_a_container_on_this_machine(pttool_gpu: Gpu, processes: Processes) -> None:
    inside = processes.in_container()
    done = pttool_gpu(machine([gpu(0, procs=f"{inside.pid}:10")]), "kill", "--yes", "--json")
    assert _items(done, 4)[inside.pid]["outcome"] == "refused"
    assert "end it in its container" in done.stderr
    assert processes.is_alive(inside)
