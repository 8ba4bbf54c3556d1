"""`pttool gpu reset`: what it refuses, and what it has nvidia-smi do."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from tests.conftest import Completed, assert_refused
from tests.fakes.nvml.fixtures import Gpu
from tests.fakes.nvml.scenarios import gpu, machine, mig, mig_uuid
from tests.fakes.processes import Processes

DONE = 'echo "GPU 00000000:0A:00.0 was successfully reset."'
# A public report, word for word (NVIDIA/gpu-operator#118).
IN_USE = (
    'printf "The following GPUs could not be reset:\\n'
    '  GPU 00000000:0A:00.0: In use by another client\\n"; exit 255'
)


class Reset(Protocol):
    """Runs `pttool gpu reset` on a scenario with an nvidia-smi that is this shell script."""

    def __call__(self, scenario: str, *args: str, smi: str = DONE) -> Completed: ...


@pytest.fixture
def smi_calls(tmp_path: Path) -> Path:
    """The file that holds the arguments of nvidia-smi's last call."""
    return tmp_path / "calls"


@pytest.fixture
def reset(pttool_gpu: Gpu, sysroot: Path, tmp_path: Path, smi_calls: Path) -> Reset:
    """Run `pttool gpu reset`."""
    (sysroot / "dev").mkdir()
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()

    def run(scenario: str, *args: str, smi: str = DONE) -> Completed:
        program.write_text(f'#!/bin/sh\necho "$@" > {smi_calls}\n{smi}\n')
        program.chmod(0o755)
        path = f"{program.parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "PTTOOL_SYSROOT": str(sysroot)}
        return pttool_gpu(scenario, "reset", *args, env=environment)

    return run


def _outcomes(done: Completed) -> list[str]:
    return [item["outcome"] for item in json.loads(done.stdout)["items"]]


def test_a_gpu_must_be_named(reset: Reset, smi_calls: Path) -> None:
    scenario = machine([gpu(0), gpu(1)])
    assert_refused(reset(scenario, "--yes"), 2, "no GPU is named", "--all")
    assert_refused(reset(scenario, "-i", "0", "--all", "--yes"), 2, "exclude each other")
    assert_refused(reset(scenario, "-i", "7", "--yes"), 2, "-i 7", "is no GPU")
    assert not smi_calls.exists()


def _ended(done: Completed) -> dict[int, str]:
    """Return what became of the processes on the first GPU."""
    processes = json.loads(done.stdout)["items"][0]["processes"]
    return {process["pid"]: process["outcome"] for process in processes}


@pytest.mark.parametrize(
    ("named", "buses"),
    [
        (["-i", "1"], "00000000:0B:00.0"),
        (["-i", "1,0"], "00000000:0A:00.0,00000000:0B:00.0"),
        (["--all"], "00000000:0A:00.0,00000000:0B:00.0"),
    ],
)
def test_nvidia_smi_is_given_the_buses(
    reset: Reset, smi_calls: Path, named: Sequence[str], buses: str
) -> None:
    done = reset(machine([gpu(0), gpu(1)]), *named, "--yes", "--json")
    assert set(_outcomes(done)) == {"reset"}
    assert done.returncode == 0
    assert "successfully reset" in done.stderr
    assert smi_calls.read_text() == f"--gpu-reset -i {buses}\n"


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--dry-run", "--yes"]])
def test_without_a_terminal_and_without_yes_nothing_is_reset(
    reset: Reset, smi_calls: Path, options: list[str]
) -> None:
    done = reset(machine([gpu(0)]), "-i", "0", *options, "--json")
    assert (done.returncode, _outcomes(done)) == (0, ["would_reset"])
    assert "--gpu-reset -i 00000000:0A:00.0" in done.stderr
    assert not smi_calls.exists()


@pytest.mark.parametrize("smi", [IN_USE, IN_USE.replace("255", "0"), "exit 3"])
def test_what_nvidia_smi_refuses_is_told_and_no_success(reset: Reset, smi: str) -> None:
    done = reset(machine([gpu(0, persist=1)]), "-i", "0", "--yes", smi=smi)
    assert done.returncode == 1
    assert "successfully" not in done.stdout + done.stderr
    assert ("In use by another client" if "use" in smi else "exit code 3") in done.stderr
    for blocker in ("nvidia-smi -pm 0 -i 0", "dcgm", "Fabric Manager", "X or", "nvidia_drm"):
        assert blocker in done.stderr


def test_a_gpu_with_processes_or_open_descriptors(
    reset: Reset, processes: Processes, sysroot: Path, smi_calls: Path
) -> None:
    job = processes.start()
    done = reset(machine([gpu(0, procs=f"{job.pid}:10")]), "-i", "0", "--yes", "--json")
    assert (done.returncode, _outcomes(done)) == (1, ["refused"])
    assert f"PID {job.pid} is on GPU 0" in done.stderr
    assert "--kill" in done.stderr
    (sysroot / "dev/nvidia1").touch()
    holder = processes.orphan(opens=[sysroot / "dev/nvidia1"])
    done = reset(machine([gpu(0), gpu(1)]), "--all", "--yes", "--json")
    assert done.returncode == 1
    assert f"PID {holder.pid} holds open GPU 1" in done.stderr
    assert not smi_calls.exists()
    assert reset(machine([gpu(0), gpu(1)]), "-i", "0", "--yes").returncode == 0
    assert processes.is_alive(holder)


def test_who_holds_only_the_driver_open_is_in_the_way_of_all(
    reset: Reset, processes: Processes, sysroot: Path, smi_calls: Path
) -> None:
    control = sysroot / "dev/nvidiactl"
    control.touch()
    holder = processes.start(opens=[control])
    scenario = machine([gpu(0), gpu(1)])
    done = reset(scenario, "--all", "--yes", "--json")
    assert (done.returncode, _outcomes(done)) == (1, ["refused", "refused"])
    assert f"PID {holder.pid} holds open nvidiactl" in done.stderr
    assert _ended(done) == {holder.pid: "left_alone"}
    assert not smi_calls.exists()
    assert reset(scenario, "-i", "0", "--yes").returncode == 0
    assert processes.is_alive(holder)
    assert reset(scenario, "--all", "--kill", "--yes").returncode == 0
    assert not processes.is_alive(holder)


def test_kill_ends_them_first(
    reset: Reset, processes: Processes, sysroot: Path, smi_calls: Path
) -> None:
    device = sysroot / "dev/nvidia0"
    device.touch()
    job, holder = processes.start("stubborn", opens=[device]), processes.orphan(opens=[device])
    scenario = machine([gpu(0, procs=f"{job.pid}:10")])
    done = reset(scenario, "-i", "0", "--kill", "--json")
    assert (done.returncode, _outcomes(done)) == (0, ["would_reset"])
    for process in (job, holder):
        assert f"would end first: PID {process.pid}" in done.stderr
        assert processes.is_alive(process)
    assert set(_ended(done).values()) == {"would_end"}
    done = reset(scenario, "-i", "0", "--kill", "--yes", "--grace", "0.2", "--json")
    assert (done.returncode, _outcomes(done)) == (0, ["reset"])
    assert _ended(done) == {job.pid: "ended_by_sigkill", holder.pid: "ended_by_sigterm"}
    assert not processes.is_alive(job)
    assert not processes.is_alive(holder)
    assert smi_calls.exists()


def test_what_may_not_be_ended_keeps_the_gpu_from_its_reset(
    reset: Reset, processes: Processes, tmp_path: Path, smi_calls: Path
) -> None:
    display, job = processes.of_program("/bin/sleep", tmp_path / "Xorg"), processes.start()
    listed = f"{display.pid}:10,{job.pid}:10"
    done = reset(machine([gpu(0, procs=listed)]), "-i", "0", "--kill", "--yes")
    assert done.returncode == 1
    assert "systemctl isolate" in done.stderr
    assert processes.is_alive(display)
    assert processes.is_alive(job)
    ghost = machine([gpu(0, procs="999991:10")], ghost_999991=1)
    done = reset(ghost, "-i", "0", "--kill", "--yes")
    assert done.returncode == 1
    assert "another PID namespace" in done.stderr
    assert not smi_calls.exists()


def test_mig_instances_are_not_lost_unasked(reset: Reset, smi_calls: Path) -> None:
    scenario = machine([gpu(0, mig="1,1", **mig(0, 1, 40192))])
    done = reset(scenario, "-i", "0", "--yes")
    assert done.returncode == 1
    assert "its 1 MIG instance would be lost" in done.stderr
    instances = {**mig(0, 1, 40192), **mig(1, 5, 19968)}
    scenario = machine([gpu(0, mig="1,1", **instances)])
    done = reset(scenario, "-i", "0", "--kill")
    assert "would lose 2 MIG instances of GPU 0" in done.stderr
    assert_refused(reset(scenario, "-i", mig_uuid(1), "--kill", "--yes"), 2, "by itself", "-i 0")
    assert not smi_calls.exists()
    assert reset(scenario, "-i", "0", "--yes", "--kill").returncode == 0


@pytest.mark.parametrize(
    ("capability", "words"),
    [
        ("7,0", "before Ampere: GPUs that it joins must be reset in one command"),
        ("8,0", "while Fabric Manager runs"),
        ("9,0", "by itself, without Fabric Manager too"),
        ("!3", "on some architectures"),
    ],
)
def test_the_rule_of_nvlink_is_that_of_the_architecture(
    reset: Reset, capability: str, words: str
) -> None:
    done = reset(machine([gpu(0, cc=capability)]), "-i", "0", "--yes", smi=IN_USE)
    assert words in done.stderr


def test_a_gpu_that_fell_off_the_bus_needs_a_reboot(
    reset: Reset, sysroot: Path, smi_calls: Path
) -> None:
    lost = machine([gpu(0), gpu(1, all="!15"), gpu(2, handle="!15")])
    (sysroot / "dev/kmsg").write_text(
        "6,1,2,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n"
        "3,2,3,-;NVRM: Xid (PCI:0000:0a:00): 43, pid=1, Ch 00000010\n"
    )
    done = reset(lost, "-i", "2", "--yes", smi=IN_USE)
    assert done.returncode == 1
    assert "after Xid 79 only a reboot" in done.stderr
    smi_calls.unlink()
    with (sysroot / "dev/kmsg").open("a") as log:
        log.write("3,3,4,-;NVRM: Xid (PCI:0000:0b:00): 79, pid=1, GPU has fallen off the bus.\n")
    done = reset(lost, "-i", "1", "--yes")
    assert done.returncode == 1
    assert "Xid 79" in done.stderr
    assert "hint: reboot" in done.stderr
    assert not smi_calls.exists()


def test_a_gpu_that_is_lost_after_its_reset_is_no_success(reset: Reset) -> None:
    done = reset(machine([gpu(0, all="!15")]), "-i", "0", "--yes", "--json")
    assert done.returncode == 1
    assert "still broken: GPU 0 (gpu_lost)" in done.stderr


def test_without_nvidia_smi(pttool_gpu: Gpu, tmp_path: Path, sysroot: Path) -> None:
    (sysroot / "dev").mkdir()
    environment = {"PATH": str(tmp_path), "PTTOOL_SYSROOT": str(sysroot)}
    done = pttool_gpu(machine([gpu(0)]), "reset", "-i", "0", "--yes", env=environment)
    assert_refused(done, 4, "nvidia-smi is not on the PATH")
