"""What is read of GPUs: every field or its named error, and one bad GPU hides no other."""

import os
from pathlib import Path

import pytest

from pttool.core.gpu.nvml import NoDriverError
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.types import Gpu, Memory, MemorySource, Process
from tests.fakes.nvml.fixtures import Machine
from tests.fakes.nvml.scenarios import gpu, machine, mig, mig_uuid, uuid

MIB = 1 << 20
PID, PARENT = os.getpid(), os.getppid()


def _gpus(become: Machine, *gpus: str, **system: object) -> tuple[Gpu, ...]:
    become(machine(gpus, **system))
    return take_snapshot().gpus


def test_a_gpu_that_answers_all(machine_here: Machine) -> None:
    machine_here(machine([gpu(0, util="93,61", procs=f"{PID}:20000", power=310500, minor=4)]))
    snapshot = take_snapshot()
    (found,) = snapshot.gpus
    assert (snapshot.driver_version, snapshot.cuda_driver_version) == ("580.95.05", "13.0")
    assert (found.uuid, found.minor, found.pci_bus_id) == (uuid(0), 4, "00000000:0A:00.0")
    assert (found.utilization_percent, found.power_w, found.power_limit_w) == (93, 310.5, 400)
    assert found.memory == Memory(81920 * MIB, 20000 * MIB, 61320 * MIB, MemorySource.NVML)
    assert found.processes == (Process(PID, "C", 20000 * MIB),)
    assert (found.mig, found.persistence_mode, found.compute_mode) == (False, True, "default")
    assert not found.errors


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (3, "not_supported"),
        (4, "no_permission"),
        (13, "driver_too_old"),
        (15, "gpu_lost"),
        (16, "reset_required"),
        (999, "unknown_error"),
        (25, "nvml_25"),
    ],
)
def test_a_field_that_fails_is_unknown_and_its_error_has_a_name(
    machine_here: Machine, code: int, name: str
) -> None:
    failed = f"!{code}"
    fields = {"util": failed, "power": failed, "mem": failed, "procs": failed, "temp": failed}
    (found,) = _gpus(machine_here, gpu(0, **fields))
    assert found.utilization_percent is found.power_w is found.temperature_c is None
    assert found.memory is None
    assert found.processes is None
    failing = {"utilization_percent", "power_w", "temperature_c", "memory", "processes"}
    assert dict(found.errors) == dict.fromkeys(failing, name)
    assert found.name == "NVIDIA A100-SXM4-80GB"
    assert found.fault == (name if code in (15, 16) else None)


@pytest.mark.parametrize("lost", ["all", "handle"])
def test_a_lost_gpu_keeps_its_place_and_hides_no_other(machine_here: Machine, lost: str) -> None:
    first, second, third = _gpus(machine_here, gpu(0), gpu(1, **{lost: "!15"}), gpu(2))
    assert (first.fault, second.fault, third.fault) == (None, "gpu_lost", None)
    assert (second.index, second.uuid, second.processes) == (1, None, None)
    assert set(second.errors.values()) == {"gpu_lost"}
    assert third.uuid == uuid(2)


def test_a_text_that_is_no_text(machine_here: Machine) -> None:
    (found,) = _gpus(machine_here, gpu(0, uuid="GPU-\xf2abc"))
    assert (found.uuid, found.errors["uuid"]) == (None, "undecodable")


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (9, "driver_not_loaded"),
        (18, "version_mismatch"),
        (4, "no_permission"),
        (999, "unknown_error"),
        (2, "nvml_2"),
    ],
)
def test_why_there_is_no_driver(machine_here: Machine, code: int, cause: str) -> None:
    machine_here(machine([gpu(0)], init=f"!{code}"))
    with pytest.raises(NoDriverError) as caught:
        take_snapshot()
    assert caught.value.cause == cause


def test_a_driver_without_gpus(machine_here: Machine) -> None:
    machine_here(machine([]))
    with pytest.raises(NoDriverError, match="no GPU"):
        take_snapshot()


def test_the_first_memory_call_where_the_second_is_missing(machine_here: Machine) -> None:
    """It counts what the driver reserves as used."""
    (found,) = _gpus(machine_here, gpu(0, nvmlDeviceGetMemoryInfo_v2="!13"))
    assert found.memory == Memory(81920 * MIB, 600 * MIB, 81320 * MIB, MemorySource.NVML_V1)
    assert "memory" not in found.errors


def test_shared_memory_is_the_systems_on_integrated_gpus_alone(
    machine_here: Machine, sysroot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sysroot / "proc").mkdir()
    (sysroot / "proc" / "meminfo").write_text("MemTotal:  1000 kB\nMemAvailable:  300 kB\n")
    monkeypatch.setenv("PTTOOL_SYSROOT", str(sysroot))
    procs = f"{PID}:6000,{PARENT}:590"
    gb10, a100 = _gpus(
        machine_here, gpu(0, name="NVIDIA GB10", mem="!3", procs=procs), gpu(1, mem="!3")
    )
    assert gb10.memory == Memory(
        1000 * 1024, 6590 * MIB, 300 * 1024, MemorySource.SYSTEM, unified=True
    )
    assert (a100.memory, a100.errors["memory"]) == (None, "not_supported")


def test_too_small_a_total_is_kept_and_flagged(machine_here: Machine) -> None:
    """As of a GPU with shared memory whose NVML tells of the firmware's part only."""
    (found,) = _gpus(machine_here, gpu(0, name="NVIDIA N1X", mem="8128,0,199", procs=f"{PID}:9000"))
    assert found.memory is not None
    assert (found.memory.total_bytes, found.memory.used_bytes) == (8128 * MIB, 9199 * MIB)
    assert (found.memory.free_bytes, found.memory.plausible) == (None, False)
    assert found.errors["memory"] == "implausible"


def test_records_of_32_bytes_are_read_by_the_older_call(machine_here: Machine) -> None:
    """Drivers 535.43 to 535.86."""
    fields = gpu(0, procs=f"{PID}:1000,{PARENT}:2000")
    (found,) = _gpus(machine_here, fields, stride32=1)
    expected = {Process(PID, "C", 1000 * MIB), Process(PARENT, "C", 2000 * MIB)}
    assert set(found.processes or ()) == expected


@pytest.mark.parametrize("pid", [0, 4294967295, (1 << 22) + 1])
def test_records_that_no_call_gives_right_are_unknown(machine_here: Machine, pid: int) -> None:
    (found,) = _gpus(machine_here, gpu(0, procs=f"{pid}:10"), **{f"ghost_{pid}": 1})
    assert (found.processes, found.errors["processes"]) == (None, "implausible_records")


def test_memory_above_what_there_is_makes_a_record_implausible(machine_here: Machine) -> None:
    (found,) = _gpus(machine_here, gpu(0, procs=f"{PID}:99999999"))
    assert (found.processes, found.errors["processes"]) == (None, "implausible_records")


def test_a_process_that_computes_and_draws_is_one(machine_here: Machine) -> None:
    lists = {"procs": f"{PID}:-", "gprocs": f"{PID}:300,{PARENT}:20"}
    (found,) = _gpus(machine_here, gpu(0, **lists))
    expected = {Process(PID, "C+G", 300 * MIB), Process(PARENT, "G", 20 * MIB)}
    assert set(found.processes or ()) == expected


def test_mig_instances_have_their_own_memory_and_processes(machine_here: Machine) -> None:
    listed = {"procs": f"{PID}:3000:1:0"}
    instances = {**mig(0, 1, 40192, **listed), **mig(3, 5, 19968)}
    (found,) = _gpus(machine_here, gpu(0, mig="1,1", util="!3", **listed, **instances))
    first, second = found.instances
    assert (first.index, second.index, second.uuid) == (0, 3, mig_uuid(3))
    assert (first.gpu_instance, first.compute_instance) == (1, 0)
    assert first.processes == (Process(PID, "C", 3000 * MIB, 1, 0),)
    assert (second.processes, found.processes) == ((), ())
    assert second.memory is not None
    assert second.memory.used_bytes == 12 * MIB


def test_a_scenario_that_changes_is_read_again(machine_here: Machine) -> None:
    assert len(_gpus(machine_here, gpu(0))) == 1
    assert len(_gpus(machine_here, *map(gpu, range(10)))) == 10
