"""What is made of a recording: phases, steps, loading, lines, names. Recordings made by hand."""

from dataclasses import replace
from itertools import pairwise

import pytest

from pttool.core.profile.profile import profile_of
from pttool.core.profile.recording import Frame, Module, Process, Recording, Samples, Window
from pttool.core.profile.types import HotLine, ModuleTime, Ops, Profile
from tests.core.profile.recordings import (
    FETCH,
    RUN,
    fetching,
    loader,
    process,
    sampled,
    stack,
    step,
)

DATASET = Frame("/home/me/data.py", 8, "__getitem__")
DECODE = Frame("/venv/site-packages/PIL/Image.py", 900, "load")
LOOP = Frame("/home/me/train.py", 12, "<module>")


def _profile(main: Process | None, **recorded: object) -> Profile:
    return profile_of("train.py", RUN, Recording(main, **recorded), Ops())  # type: ignore[arg-type]


def test_phases_sum_to_the_wall_time() -> None:
    """The parent saw 101.5 s: 0.5 s before the recorder's 100 s, and 1 s behind them."""
    found = _profile(process({"forward": 60.0, "data_wait": 20.0}))
    assert found.wall_s == 101.5
    assert sum(found.phases_s.values()) == pytest.approx(101.5, rel=1e-9)
    assert (found.phases_s["interpreter"], found.phases_s["exit"]) == (0.5, 1.0)
    assert found.phases_s["forward"] == 60.0


def test_without_a_recording_there_is_the_wall_time_and_a_note() -> None:
    found = _profile(None)
    assert found.phases_s["interpreter"] == found.wall_s == sum(found.phases_s.values())
    assert "-I, -E or -S" in found.notes[0]
    assert (found.steps, found.final, found.findings) == (0, False, ())


def test_what_a_killed_run_did_last_is_unknown() -> None:
    found = _profile(process({"other": 5.0}, is_final=False))
    assert not found.final
    assert (found.phases_s["other"], found.phases_s["exit"]) == (6.0, 0.0)


def test_steady_state_leaves_out_what_is_no_part_of_a_step() -> None:
    steady = _profile(process({"forward": 60.0, "profiler": 5.0}, steps=50)).steady
    assert steady is not None
    assert steady.wall_s == pytest.approx(85.0)
    assert "profiler" not in steady.phases_s
    assert steady.fraction("forward") == pytest.approx(60 / 85)
    assert steady.compute_s == pytest.approx(85 / 50)


def test_step_times_are_those_of_steady_steps() -> None:
    """1 to 100 ms; the first steps are slower, and what the profiler took is no step's."""
    rows = [step(0, 20.0, False, forward=9.0)]
    rows += [step(n, 20.0 + n, forward=n / 1000, profiler=1.0) for n in range(1, 101)]
    times = _profile(process({}, step_rows=tuple(rows))).step_ms
    assert times is not None
    assert (times.p50, times.p90, times.p99) == pytest.approx((50, 90, 99))


def test_loading_sums_all_processes_up() -> None:
    """Two workers: 200 batches in 120 s, 1600 samples, 6 s of collate, 30 s of CPU."""
    both = (fetching(worker=0), fetching(worker=1))
    found = _profile(process({}, loaders=(loader(workers=2),)), fetching=both).loader
    assert found is not None
    assert (found.workers, found.batches, found.processes) == (2, 200, 2)
    assert (found.fetch_ms, found.sample_ms) == pytest.approx((600, 75))
    assert (found.collate_fraction, found.cpu_fraction) == pytest.approx((0.05, 0.25))


def test_loading_is_that_of_the_loader_waited_for_longest() -> None:
    several = (loader(workers=0, wait_s=1.0), loader(workers=3, wait_s=9.0, batch_size=None))
    found = _profile(process({}, loaders=several), fetching=(fetching(samples=0),)).loader
    assert found is not None
    assert (found.workers, found.batch_size, found.sample_ms) == (3, None, None)


def test_no_loader_no_loading() -> None:
    assert _profile(process({}), fetching=(fetching(),)).loader is None
    assert _profile(process({}, loaders=(loader(),))).loader is None


def test_hot_lines_are_the_users_below_the_fetch() -> None:
    """Only what makes batches counts, in the script and in the workers alike."""
    main = process({}, samples=sampled(stack("forward", 50, LOOP), stack("data_wait", 5, LOOP)))
    worker = process(
        {},
        role="worker",
        samples=sampled(
            stack("data_wait", 30, FETCH, DATASET, DECODE),
            stack("data_wait", 10, FETCH, DATASET),
            stack("data_wait", 60, LOOP, FETCH, DECODE),
        ),
    )
    assert _profile(main, workers=(worker,)).hot_lines == (
        HotLine(DECODE.file, 900, "load", 0.6),
        HotLine(DATASET.file, 8, "__getitem__", 0.4),
    )


def test_modules_by_time_and_by_root_where_there_are_several() -> None:
    net = [Module("Net", "", "Net", 3, 0.001), Module("Net", "conv1", "Conv2d", 3, 0.02)]
    assert _profile(process({}, modules=tuple(net))).modules == (
        ModuleTime("conv1", "Conv2d", 20.0, 3),
        ModuleTime("", "Net", 1.0, 3),
    )
    both = (*net, Module("Critic", "", "Critic", 3, 0.5))
    names = [each.name for each in _profile(process({}, modules=both)).modules]
    assert names == ["Critic", "Net.conv1", "Net"]


def test_stacks_stand_below_their_phase_and_show_where_a_package_begins() -> None:
    worker = process({}, role="worker", samples=sampled(stack("data_wait", 2, FETCH, DECODE)))
    main = process({}, samples=sampled(stack("forward", 3, LOOP)))
    assert _profile(main, workers=(worker,)).stacks == {
        ("forward", "<module> (train.py:12)"): 3,
        (
            "worker",
            "_MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:54)",
            "load (PIL/Image.py:900)",
        ): 2,
    }


def test_the_timeline_covers_the_run_without_gaps() -> None:
    rows = tuple(step(n, 20.0 + n, forward=0.75, data_wait=0.25) for n in range(1000))
    spans = _profile(process({}, step_rows=rows)).timeline
    assert (spans[0].start_s, spans[-1].end_s) == (0.0, 101.5)
    assert all(left.end_s == right.start_s for left, right in pairwise(spans))
    assert len(spans) <= 244
    assert spans[2].phases_s["forward"] == 3 * spans[2].phases_s["data_wait"]


def test_overhead_is_the_profiler_and_the_sampler() -> None:
    assert _profile(process({"profiler": 2.0}, sampler_cpu_s=0.5)).overhead_s == 2.5


def test_a_window_without_a_trace_has_no_ops() -> None:
    lost = Window(None, 5, 3, 30.0, 31.0)
    main = replace(process({}, windows=(lost,)), samples=Samples(0, 0, ()))
    found = _profile(main)
    assert (found.ops.rows, found.ops.steps) == ((), 0)
