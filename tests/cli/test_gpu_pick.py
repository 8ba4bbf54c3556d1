"""`pttool gpu pick` and `gpu wait`, and what `gpu info --torch` adds."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PTTOOL, assert_refused
from tests.fakes.nvml.fixtures import Gpu, Machine
from tests.fakes.nvml.scenarios import gpu, machine, mig, mig_uuid, uuid
from tests.fakes.processes import Processes

ME = os.getpid()
SMALL = {"name": "NVIDIA GeForce GT 1030", "mem": "2048,50,0"}
LARGE = {"name": "NVIDIA GeForce RTX 4090", "mem": "24564,300,0"}
FAKE_TORCH = """
import types

def _properties(number):
    return types.SimpleNamespace(name="a GPU", total_memory=1 << 30, uuid={uuid!r})

__version__ = "9.9"
version = types.SimpleNamespace(cuda=None, hip="6.4")
cuda = types.SimpleNamespace(
    is_available=lambda: True, device_count=lambda: 1, get_device_properties=_properties
)
"""


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("uuid", "{uuid}"),
        ("index", "1"),
        ("export", "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={uuid}"),
    ],
)
def test_the_gpu_with_enough_memory_as_a_shell_takes_it(
    pttool_gpu: Gpu, style: str, text: str
) -> None:
    scenario = machine([gpu(0, **SMALL), gpu(1, **LARGE)])
    done = pttool_gpu(scenario, "pick", "--min-free", "10GiB", "--format", style)
    assert (done.returncode, done.stdout) == (0, text.format(uuid=uuid(1)) + "\n")
    assert ("CUDA_DEVICE_ORDER" in done.stderr) == (style == "index")


def test_no_warning_where_the_order_is_that_of_the_buses(pttool_gpu: Gpu) -> None:
    env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    scenario = machine([gpu(0, **SMALL), gpu(1, **LARGE)])
    done = pttool_gpu(scenario, "pick", "--format", "index", "-n", "2", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1,0\n", "")


@pytest.mark.parametrize("verb", [["pick"], ["wait", "--timeout", "0"]])
def test_all_or_nothing(pttool_gpu: Gpu, verb: list[str]) -> None:
    scenario = machine([gpu(0, util="99,1"), gpu(1, all="!15"), gpu(2), gpu(3, procs=f"{ME}:9")])
    assert pttool_gpu(scenario, *verb).stdout == f"{uuid(2)}\n"
    refused = pttool_gpu(scenario, *verb, "-n", "2")
    assert_refused(refused, 1, "GPU 0: 99 % busy", "GPU 1: gpu_lost", "GPU 3: 1 process")
    assert_refused(pttool_gpu(scenario, *verb, "-n", "2", "--json"), 1)


def test_an_old_driver_whose_processes_are_unknown_is_not_taken_for_free(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0, procs="!13", gprocs="!13")])
    assert_refused(pttool_gpu(scenario, "pick"), 1, "driver_too_old")
    assert_refused(pttool_gpu(scenario, "pick", "--min-free", "1GiB"), 1, "driver_too_old")


def test_in_mig_mode_the_idle_instance(pttool_gpu: Gpu) -> None:
    listed = {"procs": f"{ME}:3000:1:0"}
    instances = {**mig(0, 1, 40192, **listed), **mig(1, 5, 19968)}
    scenario = machine([gpu(0, mig="1,1", util="!3", **listed, **instances)])
    assert pttool_gpu(scenario, "pick").stdout == f"{mig_uuid(1)}\n"
    assert_refused(pttool_gpu(scenario, "pick", "--format", "index"), 2, "UUID")


def test_the_picked_gpus_as_data(pttool_gpu: Gpu) -> None:
    done = pttool_gpu(machine([gpu(0, **SMALL), gpu(1, **LARGE)]), "pick", "-n", "2", "--json")
    document = json.loads(done.stdout)
    assert [item["index"] for item in document["items"]] == [1, 0]
    assert document["summary"]["uuids"] == [uuid(1), uuid(0)]


@pytest.mark.parametrize(
    "wrong", [["--min-free", "much"], ["-n", "0"], ["--max-util", "101"], ["--format", "x"]]
)
def test_conditions_that_are_none(pttool_gpu: Gpu, wrong: list[str]) -> None:
    assert_refused(pttool_gpu(machine([gpu(0)]), "pick", *wrong), 2, wrong[1])


def test_what_a_job_has_booked_is_not_picked(pttool_gpu: Gpu, machine_environment: Machine) -> None:
    """Though the job has not begun to compute."""
    scenario = machine([gpu(0)])
    job = subprocess.Popen(
        [PTTOOL, "gpu", "run", "--", "sh", "-c", "echo; read end"],
        env={**os.environ, **machine_environment(scenario), "CUDA_VISIBLE_DEVICES": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"\n"
        assert_refused(pttool_gpu(scenario, "pick"), 1, "booked")
    assert pttool_gpu(scenario, "pick").stdout == f"{uuid(0)}\n"


def test_waiting_ends_as_soon_as_a_process_does(
    machine_environment: Machine, processes: Processes
) -> None:
    job = processes.start()
    scenario = machine([gpu(0, procs=f"{job.pid}:1000")])
    waiting = subprocess.Popen(
        [PTTOOL, "gpu", "wait", "--every", "0.05"],
        env={**os.environ, **machine_environment(scenario), "CUDA_VISIBLE_DEVICES": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=1)
    processes.end_all()
    assert waiting.communicate(timeout=30) == (f"{uuid(0)}\n".encode(), b"")
    assert waiting.returncode == 0


@pytest.mark.parametrize(
    "wrong",
    [
        *(["info", "--watch", number] for number in ("nan", "inf", "1e10")),
        *(["wait", "--every", number] for number in ("nan", "inf", "1e10")),
        *([*verb, "--timeout", "nan"] for verb in (["wait"], ["run"])),
    ],
)
def test_times_that_are_no_number_of_seconds(pttool_gpu: Gpu, wrong: list[str]) -> None:
    command = ["--", "true"] if wrong[0] == "run" else []
    assert_refused(pttool_gpu(machine([gpu(0)]), *wrong, *command), 2, wrong[1])


def test_waiting_may_have_no_end(pttool_gpu: Gpu) -> None:
    done = pttool_gpu(machine([gpu(0)]), "wait", "--timeout", "inf")
    assert (done.returncode, done.stdout) == (0, f"{uuid(0)}\n")


def test_waiting_for_what_never_comes_ends_at_once(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0), gpu(1, all="!15")])
    assert_refused(pttool_gpu(scenario, "wait", "-n", "3"), 1, "there are 2 in all")
    assert_refused(pttool_gpu(scenario, "wait", "--min-free", "90GiB"), 1, "80.0 GiB in all")


@pytest.mark.parametrize("verb", [["pick"], ["wait", "--timeout", "0"]])
def test_what_cuda_visible_devices_lets_through(pttool_gpu: Gpu, verb: list[str]) -> None:
    instances = {**mig(0, 1, 40192), **mig(1, 5, 19968)}
    scenario = machine([gpu(0, **LARGE), gpu(1, **SMALL), gpu(2, mig="1,1", **instances)])
    for value, text, hidden in (
        ("1", uuid(1), "MIG instance 0 of GPU 2"),
        (f"{uuid(1)},{uuid(0)}", uuid(0), "MIG instance 0 of GPU 2"),
        ("2", mig_uuid(0), ""),
        (mig_uuid(1), mig_uuid(1), "MIG instance 0 of GPU 2"),
    ):
        env = {"CUDA_VISIBLE_DEVICES": value}
        done = pttool_gpu(scenario, *verb, "--visible", env=env)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{text}\n", "")
        beyond = pttool_gpu(scenario, *verb, env=env)
        assert beyond.stdout == f"{mig_uuid(0)}\n"
        assert bool(beyond.stderr) == bool(hidden)
        assert hidden in beyond.stderr
    none = pttool_gpu(scenario, *verb, "--visible", env={"CUDA_VISIBLE_DEVICES": ""})
    assert_refused(none, 1, "GPU 0: CUDA_VISIBLE_DEVICES hides it")


def test_torch_says_what_it_sees(pttool_gpu: Gpu, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(FAKE_TORCH.format(uuid=uuid(1).removeprefix("GPU-")))
    scenario, env = machine([gpu(0), gpu(1)]), {"PYTHONPATH": str(tmp_path)}
    document = json.loads(pttool_gpu(scenario, "info", "--torch", "--json", env=env).stdout)
    assert [item["torch_device"] for item in document["items"]] == [None, "cuda:0"]
    assert document["summary"]["torch"] == {
        "version": "9.9", "built_for": "ROCm 6.4", "devices": 1, "error": None,
    }  # fmt: skip
    without = pttool_gpu(machine([], init="!9"), "info", "--torch", "--json", env=env)
    assert without.returncode == 0
    (item,) = json.loads(without.stdout)["items"]
    assert (item["torch_device"], item["memory"]["total_bytes"]) == ("cuda:0", 1 << 30)
    assert item["memory"]["used_bytes"] is item["processes"] is None


def test_a_torch_that_fails_hides_no_gpu(pttool_gpu: Gpu, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart is broken')")
    env = {"PYTHONPATH": str(tmp_path)}
    done = pttool_gpu(machine([gpu(0)]), "info", "--torch", "--json", env=env)
    assert done.returncode == 0
    summary = json.loads(done.stdout)["summary"]
    assert summary["torch"]["error"] == "OSError: libcudart is broken"
    assert "libcudart is broken" in done.stderr
