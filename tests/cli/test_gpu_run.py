"""`pttool gpu run`: a job gets GPUs that no other job has, and is itself in all else."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from pttool.core.gpu.locks import lock_path
from tests.conftest import PTTOOL, assert_refused
from tests.fakes.nvml.fixtures import Gpu, Machine
from tests.fakes.nvml.scenarios import gpu, machine, mig
from tests.fakes.processes import Processes

Job = subprocess.Popen[str]


class Starter(Protocol):
    """Starts `pttool gpu run ARGS -- sh -c SCRIPT` and doesn't wait for it."""

    def __call__(self, scenario: str, script: str, *args: str) -> Job: ...


@pytest.fixture
def uuids() -> Iterator[list[str]]:
    """UUIDs of GPUs that no other test on this host has, since locks are the host's."""
    made = [f"GPU-{uuid.uuid4()}" for _ in range(8)]
    yield made
    for name in made:
        lock_path(name).unlink(missing_ok=True)


@pytest.fixture
def start(
    machine_environment: Machine, environment: dict[str, str], tmp_path: Path
) -> Iterator[Starter]:
    """Start jobs, and end those that are left."""
    jobs: list[Job] = []

    def run(scenario: str, script: str, *args: str) -> Job:
        jobs.append(
            subprocess.Popen(
                [PTTOOL, "gpu", "run", *args, "--", "sh", "-c", script],
                cwd=tmp_path,
                env={**environment, **machine_environment(scenario)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
        )
        return jobs[-1]

    yield run
    for job in jobs:
        job.kill()
        job.communicate(timeout=60)


def _idle(uuids: Sequence[str]) -> str:
    return machine([gpu(index, uuid=name) for index, name in enumerate(uuids)])


def test_the_job_sees_its_gpus_and_its_exit_code_is_its_own(
    pttool_gpu: Gpu, uuids: list[str]
) -> None:
    show = 'echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $0 $1"; exit 7'
    done = pttool_gpu(_idle(uuids[:3]), "run", "-n", "2", "--", "sh", "-c", show, "a b", "-n")
    assert done.stdout == f"PCI_BUS_ID {uuids[0]},{uuids[1]} a b -n\n"
    assert (done.returncode, done.stderr) == (7, "")


def test_a_job_in_mig_mode_gets_an_instance(pttool_gpu: Gpu, uuids: list[str]) -> None:
    names = [name.replace("GPU-", "MIG-") for name in uuids[:2]]
    instances = {**mig(0, 1, 20480, uuid=names[0]), **mig(1, 2, 40960, uuid=names[1])}
    scenario = machine([gpu(0, uuid=uuids[2], mig="1,1", **instances)])
    done = pttool_gpu(scenario, "run", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert done.stdout == f"{names[1]}\n"
    for name in names:
        lock_path(name).unlink()


def test_a_lock_is_held_until_the_job_is_dead(
    start: Starter, pttool_gpu: Gpu, uuids: list[str]
) -> None:
    scenario = _idle(uuids[:1])
    job = start(scenario, "echo running; exec sleep 3600")
    assert job.stdout is not None
    assert job.stdout.readline() == "running\n"
    assert_refused(
        pttool_gpu(scenario, "run", "--timeout", "0", "--", "true"), 1, "0 free", "booked 1"
    )
    waiting = start(scenario, "echo mine")
    assert waiting.stderr is not None
    assert "waiting: 1 GPU is wanted, and 0 free" in waiting.stderr.readline()
    job.kill()
    assert waiting.communicate(timeout=60)[0] == "mine\n"
    assert waiting.returncode == 0


@pytest.mark.parametrize("count", [16, pytest.param(100, marks=pytest.mark.verify)])
def test_jobs_at_once_never_share_a_gpu(
    start: Starter, uuids: list[str], tmp_path: Path, count: int
) -> None:
    # A folder can be made once: a second job on the same GPU would fail.
    script = 'mkdir "$CUDA_VISIBLE_DEVICES" && sleep 0.02 && rmdir "$CUDA_VISIBLE_DEVICES"'
    jobs = [start(_idle(uuids), script) for _ in range(count)]
    errors = [job.communicate(timeout=120)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0] * count, errors
    assert not set(uuids) & set(os.listdir(tmp_path))


def test_busy_gpus_are_waited_for_and_hopeless_ones_are_not(
    pttool_gpu: Gpu, uuids: list[str], processes: Processes
) -> None:
    busy = machine([gpu(0, uuid=uuids[0], procs=f"{processes.start().pid}:30000")])
    assert_refused(pttool_gpu(busy, "run", "--timeout", "0", "--", "true"), 1, "1 process")
    done = pttool_gpu(busy, "run", "--min-free", "20GiB", "--", "echo", "enough")
    assert done.stdout == "enough\n"
    lost = machine([gpu(0, uuid=uuids[0], all="!15")])
    assert_refused(pttool_gpu(lost, "run", "--", "true"), 1, "gpu_lost")
    assert_refused(pttool_gpu(_idle(uuids[:2]), "run", "-n", "3", "--", "true"), 1, "2 in all")
    assert_refused(
        pttool_gpu(_idle(uuids[:1]), "run", "--min-free", "1TiB", "--", "true"), 1, "80.0 GiB"
    )
    assert_refused(pttool_gpu("init=!9\n", "run", "--", "true"), 4, "module is not loaded")


def test_a_command_that_can_not_be_run(pttool_gpu: Gpu, uuids: list[str], tmp_path: Path) -> None:
    scenario = _idle(uuids[:1])
    assert_refused(pttool_gpu(scenario, "run", "--", "no-such-program"), 2, "no such command")
    assert_refused(pttool_gpu(scenario, "run"), 2, "missing argument")
    script = tmp_path / "job.sh"
    script.write_text("echo no first line\n")
    script.chmod(0o644)
    assert_refused(pttool_gpu(scenario, "run", "./job.sh"), 2, "is not executable", "chmod +x")
    script.chmod(0o755)
    assert_refused(pttool_gpu(scenario, "run", "--", "./job.sh"), 2, "job.sh", "#!/bin/sh")
    assert pttool_gpu(scenario, "run", "--timeout", "0", "--", "true").returncode == 0


def test_a_job_within_another_ones_gpus(pttool_gpu: Gpu, uuids: list[str]) -> None:
    """As of a batch system that has set CUDA_VISIBLE_DEVICES."""
    show, env = ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], {"CUDA_VISIBLE_DEVICES": "1"}
    beyond = pttool_gpu(_idle(uuids[:3]), "run", "-n", "3", *show, env=env)
    assert beyond.stdout == f"{','.join(uuids[:3])}\n"
    assert "CUDA_VISIBLE_DEVICES hides GPU 0, GPU 2: --visible" in beyond.stderr
    within = pttool_gpu(_idle(uuids[:3]), "run", "--visible", *show, env=env)
    assert (within.stdout, within.stderr) == (f"{uuids[1]}\n", "")
    none = pttool_gpu(_idle(uuids[:3]), "run", "-n", "2", "--visible", *show, env=env)
    assert_refused(none, 1, "GPU 0: CUDA_VISIBLE_DEVICES hides it")


def test_the_job_has_the_signals_of_any_program(pttool_gpu: Gpu, uuids: list[str]) -> None:
    done = pttool_gpu(_idle(uuids[:1]), "run", "--", "grep", "Sig[IBC]", "/proc/self/status")
    masks = dict(line.split(":\t") for line in done.stdout.splitlines())
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        assert not int(masks["SigIgn"], 16) >> (number - 1) & 1
    assert int(masks["SigBlk"], 16) == 0
