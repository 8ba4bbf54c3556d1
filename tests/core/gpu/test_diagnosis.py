"""The decision of doctor, and the probes below it: what they can't be made to show end to end."""

from dataclasses import replace
from pathlib import Path

import pytest

from pttool.core.children import Answer, Child, Ending
from pttool.core.gpu.diagnosis import gathering
from pttool.core.gpu.diagnosis.architectures import runs_on
from pttool.core.gpu.diagnosis.decision import diagnose
from pttool.core.gpu.diagnosis.facts import CudaFacts, Facts, NvmlFacts, SystemFacts
from pttool.core.gpu.doctor import TORCH_CHILD
from pttool.core.torch_build import TorchBuild
from tests.fakes.cuda.fixtures import Broken
from tests.fakes.nvml.scenarios import gpu, machine

TORCH = TorchBuild(Path("torch"), "2.14.1+cu130", cuda="13.0")
CUDA_CHILD = "pttool.core.gpu.diagnosis.cuda_child"


def _become(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")


def test_a_driver_that_hangs_is_a_finding(
    broken_machine: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    _become(broken_machine(machine([gpu(0)], cuinit="hang")), monkeypatch)
    monkeypatch.setattr(gathering, "DRIVER_LIMIT_S", 2.0)
    with Child(TORCH_CHILD) as torch:
        facts = gathering.gather_facts(torch)
    assert facts.cuda.ending is Ending.HUNG
    assert facts.cuda.driver_version == 13000  # told before the call that never returned
    assert diagnose(facts).cause == "driver_hangs"


def test_an_nvml_that_crashes_or_hangs_is_a_finding() -> None:
    facts = Facts(torch=TORCH, cuda=CudaFacts(code=0, devices=1))
    assert diagnose(replace(facts, nvml=NvmlFacts("hung"))).cause == "driver_hangs"
    assert diagnose(replace(facts, nvml=NvmlFacts("crashed"))).cause == "driver_crashes"


def test_on_macos_it_points_to_mps() -> None:
    built = TorchBuild(Path("torch"), "2.14.1")
    diagnosis = diagnose(Facts(system="Darwin", torch=built))
    assert diagnosis.cause == "mac_use_mps"
    assert "mps" in str(diagnosis.fix)


def test_the_first_cause_wins() -> None:
    """A missing torch hides the rest, a mismatch what cuInit says of it, a CPU build the driver."""
    mismatch = Facts(torch=TORCH, nvml=NvmlFacts("version_mismatch"), cuda=CudaFacts(code=100))
    assert diagnose(mismatch).cause == "driver_library_mismatch"
    assert diagnose(replace(mismatch, torch=None)).cause == "torch_missing"
    cpu = replace(mismatch, torch=TorchBuild(Path("torch"), "2.14.1+cpu"))
    assert diagnose(cpu).cause == "cpu_only_build"
    denied = replace(mismatch, nvml=NvmlFacts(), files=SystemFacts(denied_nodes=("/dev/nvidia0",)))
    assert diagnose(denied).cause == "device_permission"


def test_what_nobody_can_explain_is_named_unknown() -> None:
    assert diagnose(Facts(torch=TORCH, cuda=CudaFacts(ending=Ending.FAILED))).cause == "unknown"


def test_a_child_that_fails_or_crashes_is_told_apart(
    broken_machine: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    _become(broken_machine(machine([gpu(0)], cuinit="crash")), monkeypatch)
    with Child(CUDA_CHILD) as crashing, Child("pttool.no_such_module") as failing:
        crashed, failed = crashing.answer(20), failing.answer(20)
    told = {"library": "found", "driver_version": 13000}
    assert crashed == Answer(told, Ending.CRASHED, "SIGSEGV")
    assert failed.ending is Ending.FAILED
    assert failed.detail == "ModuleNotFoundError: No module named 'pttool.no_such_module'"


def test_architectures_run_where_torch_says_they_do() -> None:
    """Without 10.1, which torch knows as another name of 11.0."""
    from torch.cuda import DEVICE_REQUIREMENT

    codes = sorted(DEVICE_REQUIREMENT.keys() - {101})
    for code in codes:
        for device in codes:
            expected = device in DEVICE_REQUIREMENT[code]
            assert runs_on([f"sm_{code}"], (device // 10, device % 10)) == expected, (code, device)


def test_ptx_runs_on_later_gpus_and_architecture_specific_code_on_its_own() -> None:
    assert runs_on(["compute_90"], (12, 0))
    assert not runs_on(["compute_90"], (8, 9))
    assert runs_on(["sm_90a"], (9, 0))
    assert not runs_on(["sm_100a"], (10, 3))
    assert runs_on(["sm_100f"], (10, 3))
