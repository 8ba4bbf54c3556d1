"""Which GPUs are free for a job: rules on snapshots that no driver made."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pttool.core.gpu.picking import Conditions, Judged, fitting, judge
from pttool.core.gpu.types import Gpu, Memory, MemorySource, MigInstance, Process, Snapshot
from pttool.core.gpu.visible import VisibleDevices

GIB = 1 << 30
NOTHING_SET = VisibleDevices(("GPU-0",), None)
A_JOB = Process(4711, "C", 30 * GIB)
A_DESKTOP = Process(4712, "G", 2 * GIB)


def _memory(used: int, total: int = 80 * GIB) -> Memory:
    return Memory(total, used, total - used, MemorySource.NVML)


IDLE = Gpu(
    0, uuid="GPU-0", memory=_memory(0), utilization_percent=0, compute_mode="default", mig=False,
    processes=(),
)  # fmt: skip
BUSY = dataclasses.replace(IDLE, memory=_memory(30 * GIB), processes=(A_JOB,))


def _judged(gpu: Gpu, conditions: Conditions) -> Judged:
    (judged,) = judge(Snapshot("580", "13.0", (gpu,)), conditions, NOTHING_SET)
    return judged


def _reason(gpu: Gpu, conditions: Conditions) -> str | None:
    against = _judged(gpu, conditions).against
    return None if against is None else against.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"processes": (A_DESKTOP,), "memory": _memory(2 * GIB)}, None),
        ({"processes": (A_JOB,), "memory": _memory(30 * GIB)}, "1 process"),
        ({"memory": _memory(17 * GIB)}, "17.0 GiB held by no listed process"),
        ({"utilization_percent": 11}, "11 % busy"),
        ({"utilization_percent": None}, None),
        ({"compute_mode": "prohibited"}, "its compute mode is prohibited"),
        ({"uuid": None}, "its UUID is unknown"),
        ({"fault": "gpu_lost"}, "gpu_lost"),
        ({"memory": None}, "its memory is unknown"),
        ({"memory": Memory(8, 9, None, MemorySource.NVML, plausible=False)},
         "its memory figures are implausible"),
        ({"processes": None, "errors": {"processes": "driver_too_old"}},
         "its processes are unknown: driver_too_old"),
        ({"mig": True}, "MIG mode is on without an instance"),
    ],
)  # fmt: skip
def test_a_gpu_is_free_where_nobody_computes(change: dict[str, object], reason: str | None) -> None:
    gpu = dataclasses.replace(IDLE, **change)  # type: ignore[arg-type]
    assert _reason(gpu, Conditions()) == reason


@pytest.mark.parametrize(
    ("change", "wanted", "reason"),
    [
        ({}, 50 * GIB, None),
        ({}, 50 * GIB + 1, "50.0 GiB free"),
        ({}, 81 * GIB, "has 80.0 GiB in all"),
        ({"utilization_percent": 40}, GIB, "40 % busy"),
        ({"compute_mode": "exclusive_process"}, GIB,
         "its compute mode is exclusive, and a process computes there"),
        ({"processes": None, "errors": {"processes": "driver_too_old"}}, GIB,
         "its processes are unknown: driver_too_old"),
        ({"processes": None, "errors": {"processes": "not_supported"}}, GIB, None),
    ],
)  # fmt: skip
def test_so_much_free_memory_will_do_whoever_computes_there(
    change: dict[str, object], wanted: int, reason: str | None
) -> None:
    gpu = dataclasses.replace(BUSY, **change)  # type: ignore[arg-type]
    assert _reason(gpu, Conditions(min_free_bytes=wanted)) == reason


def test_a_wish_for_little_load_takes_no_unknown_load() -> None:
    gpu = dataclasses.replace(IDLE, utilization_percent=None)
    assert _reason(gpu, Conditions(max_utilization_percent=100)) == "its utilization is unknown"
    assert _reason(IDLE, Conditions(max_utilization_percent=0)) is None


def test_what_the_system_uses_of_shared_memory_is_no_job() -> None:
    memory = Memory(24 * GIB, 9 * GIB, 15 * GIB, MemorySource.SYSTEM, unified=True)
    assert _reason(dataclasses.replace(IDLE, memory=memory), Conditions()) is None


@pytest.mark.parametrize(
    ("gpu", "conditions", "may"),
    [
        (IDLE, Conditions(), True),
        (BUSY, Conditions(), True),
        (BUSY, Conditions(min_free_bytes=60 * GIB), True),
        (BUSY, Conditions(min_free_bytes=90 * GIB), False),
        (dataclasses.replace(IDLE, fault="gpu_lost"), Conditions(), False),
    ],
)
def test_what_waiting_can_bring(gpu: Gpu, conditions: Conditions, may: bool) -> None:
    assert _judged(gpu, conditions).may_fit_later == may


def test_in_mig_mode_instances_are_picked_and_never_the_gpu() -> None:
    def instance(index: int, *processes: Process) -> MigInstance:
        return MigInstance(index, f"MIG-{index}", None, index, 0, _memory(0), processes)

    gpu = dataclasses.replace(BUSY, mig=True, instances=(instance(0, A_JOB), instance(1)))
    judged = judge(Snapshot("580", "13.0", (gpu,)), Conditions(), NOTHING_SET)
    assert [each.uuid for each in judged] == ["MIG-0", "MIG-1"]
    assert [each.uuid for each in fitting(judged)] == ["MIG-1"]


@given(
    st.lists(
        st.tuples(st.integers(0, 80), st.one_of(st.none(), st.integers(0, 100)), st.booleans()),
        max_size=6,
    ),
    st.one_of(st.none(), st.integers(1, 80)),
    st.one_of(st.none(), st.integers(0, 100)),
)
def test_what_is_picked_holds_to_the_conditions_and_is_the_best(
    drawn: list[tuple[int, int | None, bool]], free_gib: int | None, most: int | None
) -> None:
    gpus = tuple(
        dataclasses.replace(
            IDLE,
            index=index,
            uuid=f"GPU-{index}",
            memory=_memory((80 - free) * GIB),
            utilization_percent=busy,
            processes=(A_JOB,) if has_job else (),
        )
        for index, (free, busy, has_job) in enumerate(drawn)
    )
    wanted = None if free_gib is None else free_gib * GIB
    conditions = Conditions(1, wanted, most)
    picked = fitting(judge(Snapshot("580", "13.0", gpus), conditions, NOTHING_SET))
    frees = [each.memory.free_bytes for each in picked if each.memory and each.memory.free_bytes]
    assert frees == sorted(frees, reverse=True)
    for each in picked:
        assert each.memory is not None
        assert each.memory.free_bytes is not None
        if wanted is None:
            assert not each.gpu.processes
        else:
            assert each.memory.free_bytes >= wanted
        assert (each.gpu.utilization_percent or 0) <= (10 if most is None else most)
