"""Each finding on a recording made by hand: when it is told, when not, and what it says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pttool.core.profile.profile import profile_of
from pttool.core.profile.recording import Frame, Process, Recording, Torch
from pttool.core.profile.types import Finding, OpRow, Ops, Profile
from tests.core.profile.recordings import (
    FETCH,
    RUN,
    fetching,
    loader,
    optimizer,
    process,
    sampled,
    stack,
)

SLEEP = Frame("/home/me/train.py", 6, "__getitem__")
LOOP = Frame("/home/me/train.py", 12, "<module>")
CUDA = Torch("2.14", 4, True, 0, 0, 0)


def _profile(main: Process, ops: Ops | None = None, **recorded: Any) -> Profile:
    return profile_of("train.py", RUN, Recording(main, **recorded), ops or Ops())


def _found(main: Process, ops: Ops | None = None, **recorded: Any) -> dict[str, Finding]:
    return {each.code: each for each in _profile(main, ops, **recorded).findings}


def test_a_run_whose_time_is_all_computation_has_no_findings() -> None:
    busy = process({"forward": 50, "backward": 30, "data_wait": 2}, loaders=(loader(),))
    assert _found(busy, fetching=(fetching(),)) == {}


def test_data_loading_bound_tells_share_place_and_workers() -> None:
    """60 s for 100 batches is 600 ms a batch; 90 - 63 s of computing in 100 steps 270 ms."""
    samples = sampled(stack("data_wait", 97, LOOP, FETCH, SLEEP), stack("forward", 40, LOOP))
    waiting = process({"data_wait": 63.0}, loaders=(loader(),), samples=samples)
    finding = _found(waiting, fetching=(fetching(),))["data-loading-bound"]
    assert finding.fraction == pytest.approx(0.7)
    assert finding.severity == "warning"
    assert "70 % of the steady time waits for data: 630 ms of a step's 900 ms" in finding.text
    assert "train.py:6 in __getitem__" in finding.text
    assert finding.fix.startswith("num_workers=3 in the DataLoader ends the wait")


def test_data_loading_bound_starts_at_a_fifth_of_the_steady_time() -> None:
    assert "data-loading-bound" not in _found(process({"data_wait": 17.9}))
    assert "data-loading-bound" in _found(process({"data_wait": 18.1}))


def test_workers_too_few_ends_where_there_are_enough() -> None:
    """600 ms a batch against 270 ms of computing: three workers keep up, two don't."""

    def told(workers: int) -> bool:
        waiting = process({"data_wait": 63.0}, loaders=(loader(workers=workers),))
        return "workers-too-few" in _found(waiting, fetching=(fetching(),))

    assert [told(workers) for workers in (0, 2, 3)] == [True, True, False]


def test_workers_for_work_of_the_cpu_are_capped_by_the_cores() -> None:
    waiting = process({"data_wait": 80.0}, loaders=(loader(),), cores=4)
    found = _profile(waiting, fetching=(fetching(cpu_s=59.0),))
    assert found.loader is not None
    assert (found.loader.workers_needed, found.loader.is_capped_by_cores) == (4, True)
    fixes = {each.code: each.fix for each in found.findings}
    assert fixes["workers-too-few"].startswith("num_workers=4, as many as there are cores")


def test_workers_beyond_reason_are_not_advised() -> None:
    """600 ms a batch against 10 ms of computing."""
    waiting = process({"data_wait": 89.0}, loaders=(loader(),))
    found = _found(waiting, fetching=(fetching(),))
    assert found["data-loading-bound"].fix.startswith("make batches cheaper; or num_workers=60")
    assert (
        found["workers-too-few"].fix == "num_workers=60 would end the wait, if 4 cores bear so many"
    )


def test_slow_collate() -> None:
    waiting = process({"data_wait": 63.0}, loaders=(loader(),))
    assert "slow-collate" not in _found(waiting, fetching=(fetching(collate_s=15.0),))
    finding = _found(waiting, fetching=(fetching(collate_s=45.0),))["slow-collate"]
    assert finding.fraction == pytest.approx(0.75)
    assert "450 ms of the 600 ms" in finding.text


def test_a_collate_function_that_no_step_waits_for_is_not_slow() -> None:
    """4.5 ms of it in each step of 900 ms."""
    waiting = process({"data_wait": 63.0}, loaders=(loader(),))
    assert "slow-collate" not in _found(waiting, fetching=(fetching(fetch_s=0.6, collate_s=0.45),))


def test_workers_startup() -> None:
    """12 s of the run's 101.5 s."""
    epochs = {"workers": 2, "epochs": 6, "iter_s": 4.0, "first_wait_s": 8.0}
    finding = _found(process({}, loaders=(loader(**epochs),)))["workers-startup"]
    assert finding.fraction == pytest.approx(12 / 101.5)
    assert "each of 6 epochs" in finding.text
    assert "persistent_workers=True" in finding.fix
    kept = loader(**epochs, persistent_workers=True)
    assert "workers-startup" not in _found(process({}, loaders=(kept,)))


def test_a_wait_that_is_for_workers_to_start_is_ended_by_keeping_them() -> None:
    epochs = loader(workers=4, epochs=6, iter_s=10.0, first_wait_s=30.0)
    waiting = process({"data_wait": 63.0}, loaders=(epochs,))
    fix = _found(waiting, fetching=(fetching(),))["data-loading-bound"].fix
    assert fix.startswith("persistent_workers=True")


def test_gpu_idle() -> None:
    ops = Ops(steps=3, wall_s=2.0, device_busy_s=0.5)
    finding = _found(process({}), ops)["gpu-idle"]
    assert finding.fraction == pytest.approx(0.75)
    assert "larger batch" in finding.fix
    assert "wait for data" in _found(process({"data_wait": 60}), ops)["gpu-idle"].fix
    assert "gpu-idle" not in _found(process({}), Ops(steps=3, wall_s=2.0, device_busy_s=1.9))
    assert "gpu-idle" not in _found(process({}), Ops(steps=3, wall_s=2.0))


def test_sync_calls_name_the_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("for x in loader:\n    loss = step(x)\n    total += loss.item()\n")
    waits = Frame(str(script), 3, "<module>")
    works = Frame(str(script), 2, "<module>")
    samples = sampled(stack("other", 20, waits), stack("forward", 80, works))
    finding = _found(process({}, samples=samples, torch=CUDA))["sync-calls"]
    assert finding.fraction == pytest.approx(0.2)
    assert "train.py:3" in finding.text
    assert "sync-calls" not in _found(process({}, samples=samples)), "a CPU is not waited for"


def test_small_ops() -> None:
    """400 calls a step of 5 µs, and one of 1 ms."""
    small = OpRow("aten::add", 1200, 6.0, 6.0)
    ops = Ops([small, OpRow("aten::mm", 3, 3.0, 3.0)], steps=3, wall_s=1.0)
    finding = _found(process({}), ops)["small-ops"]
    assert finding.fraction == pytest.approx(6 / 9)
    assert "400 ops" in finding.text
    large = Ops([small, OpRow("aten::mm", 3, 30.0, 30.0)], steps=3, wall_s=1.0)
    assert "small-ops" not in _found(process({}), large)


@pytest.mark.parametrize(
    ("chosen", "is_told"),
    [
        ({}, True),
        ({"foreach": True}, False),
        ({"fused": True}, False),
        ({"device": "cuda"}, False),
        ({"device": "cuda", "foreach": False}, True),
        ({"parameters": 4}, False),
    ],
)
def test_optimizer_foreach_off(chosen: dict[str, Any], is_told: bool) -> None:
    slow = process({"optimizer": 18.0}, optimizers=(optimizer(**chosen),))
    found = _found(slow)
    assert ("optimizer-foreach-off" in found) is is_told
    if is_told:
        assert found["optimizer-foreach-off"].fraction == pytest.approx(0.2)


def test_optimizer_foreach_off_needs_an_optimizer_that_takes_time() -> None:
    assert _found(process({"optimizer": 5.0}, optimizers=(optimizer(),))) == {}


def test_thread_oversubscription() -> None:
    many = Torch("2.14", 8, False, 0, 0, 0)
    assert "8 threads on 4 cores" in _found(process({}, torch=many))["thread-oversubscription"].text
    worker = process({}, role="worker", torch=Torch("2.14", 4, False, 0, 0, 0))
    text = _found(process({}), workers=(worker, worker))["thread-oversubscription"].text
    assert "2 workers compute with 8 threads on 4 cores" in text


def test_checkpoint_heavy() -> None:
    saving = process({"save": 30.0}, phase_calls={"save": 10})
    finding = _found(saving)["checkpoint-heavy"]
    assert finding.fraction == pytest.approx(1 / 3)
    assert "10 times and took 30.00 s" in finding.text


def test_recompiles() -> None:
    again = _found(process({}, torch=Torch("2.14", 4, False, 9, 0, 8)))
    assert "8 times" in again["recompiles"].text
    assert _found(process({}, torch=Torch("2.14", 4, False, 2, 0, 1))) == {}


@pytest.mark.parametrize(("steps", "wall_s"), [(9, 90.0), (100, 0.9)])
def test_too_short_stands_alone(steps: int, wall_s: float) -> None:
    waiting = process({"data_wait": wall_s, "other": 0.0}, steps=steps, loaders=(loader(),))
    found = _profile(waiting, fetching=(fetching(),))
    assert [finding.code for finding in found.findings] == ["too-short"]
    assert found.loader is not None
    assert found.loader.workers_needed is None


def test_a_run_without_steps_says_so() -> None:
    finding = _found(replace(process({}, steps=0), steps=0))["too-short"]
    assert "no training step was seen" in finding.text
