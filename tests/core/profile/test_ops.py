"""The op table against torch.profiler's own, on the same windows."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from pttool.core.profile import trace_events
from pttool.core.profile.ops import op_table
from pttool.core.profile.types import OpRow

Step = Callable[[], object]
Figures = tuple[int, float, float, int]


def _recorded(step: Step, trace: Path, *, steps: int = 3, with_stack: bool = False) -> Any:
    """Run a step under torch.profiler, export the trace, and return the profiler."""
    step()
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=True,
        with_stack=with_stack,
    ) as profiler:
        for _ in range(steps):
            step()
    profiler.export_chrome_trace(str(trace))
    return profiler


def _theirs(profiler: Any, *, by_shape: bool = False) -> dict[tuple[str, str], list[Figures]]:
    found: dict[tuple[str, str], list[Figures]] = {}
    for event in profiler.key_averages(group_by_input_shape=by_shape):
        key = (event.key, str(event.input_shapes) if by_shape else "None")
        self_ms, total_ms = event.self_cpu_time_total / 1e3, event.cpu_time_total / 1e3
        figures = (event.count, self_ms, total_ms, event.self_cpu_memory_usage)
        found.setdefault(key, []).append(figures)
    return found


def _ours(rows: list[OpRow]) -> dict[tuple[str, str], list[Figures]]:
    found: dict[tuple[str, str], list[Figures]] = {}
    for row in rows:
        assert row.self_bytes is not None
        figures = (row.calls, row.self_ms, row.total_ms, row.self_bytes)
        found.setdefault((row.name, str(row.shapes)), []).append(figures)
    return found


def _assert_equal(
    ours: dict[tuple[str, str], list[Figures]], theirs: dict[tuple[str, str], list[Figures]]
) -> None:
    assert ours.keys() == theirs.keys()
    for key, rows in theirs.items():
        for mine, torchs in zip(sorted(ours[key]), sorted(rows), strict=True):
            assert (mine[0], mine[3]) == (torchs[0], torchs[3]), key
            assert mine[1:3] == pytest.approx(torchs[1:3], abs=1e-6), key  # 1 ns


def _training() -> Step:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    model.append(nn.Linear(4 * 36, 5))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    images = torch.randn(2, 3, 8, 8)

    def step() -> None:
        with record_function("forward of ours"):
            loss = model(images).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def _nested_duplicates() -> None:
    with record_function("one"), record_function("one"), record_function("one"):
        torch.ones(3) + 1
        torch.ones(3) + 1
    with record_function("two"), record_function("two"):
        torch.zeros(5)
        with record_function("two"):
            torch.zeros(5)
    with record_function("aten::zeros"):
        torch.zeros(7)


def _two_threads() -> None:
    def work() -> None:
        for _ in range(20):
            torch.randn(50, 50) @ torch.randn(50, 50)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()


_KEPT: list[torch.Tensor] = []


def _memory_that_no_op_frees() -> None:
    _KEPT.append(torch.ones(1000))
    _KEPT[:] = _KEPT[-1:]


def _lists_of_tensors() -> None:
    torch.cat([torch.ones(2, 3)] * 3)
    torch.cat([torch.ones(1)] * 40)
    torch.stack([torch.ones(2), torch.zeros(2)]).sum(0)


STEPS = {
    "training": _training(),
    "nested duplicates": _nested_duplicates,
    "two threads": _two_threads,
    "memory that no op frees": _memory_that_no_op_frees,
    "lists of tensors": _lists_of_tensors,
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_the_table_is_the_one_of_key_averages(step: Step, tmp_path: Path) -> None:
    profiler = _recorded(step, tmp_path / "trace.json")
    table = op_table([tmp_path / "trace.json"])
    by_shape = op_table([tmp_path / "trace.json"], by_shape=True)
    _assert_equal(_ours(table.rows), _theirs(profiler))
    _assert_equal(_ours(by_shape.rows), _theirs(profiler, by_shape=True))


def test_python_functions_in_a_trace_are_no_ops(tmp_path: Path) -> None:
    profiler = _recorded(STEPS["training"], tmp_path / "trace.json", with_stack=True)
    assert "python_function" in (tmp_path / "trace.json").read_text()
    _assert_equal(_ours(op_table([tmp_path / "trace.json"]).rows), _theirs(profiler))


def test_all_windows_are_summed(tmp_path: Path) -> None:
    paths = [tmp_path / f"trace-{number}.json" for number in range(3)]
    expected: dict[str, int] = {}
    for steps, path in enumerate(paths, start=1):
        for event in _recorded(STEPS["training"], path, steps=steps).key_averages():
            expected[event.key] = expected.get(event.key, 0) + event.count
    rows = op_table(paths).rows
    assert {row.name: row.calls for row in rows} == expected
    apart = [row for path in paths for row in op_table([path]).rows if row.name == "aten::addmm"]
    together = next(row for row in rows if row.name == "aten::addmm")
    assert together.calls == 1 + 2 + 3
    assert together.self_ms == pytest.approx(sum(row.self_ms for row in apart))


def test_the_rows_are_sorted_by_self_time(tmp_path: Path) -> None:
    _recorded(STEPS["training"], tmp_path / "trace.json")
    times = [row.self_ms for row in op_table([tmp_path / "trace.json"]).rows]
    assert times == sorted(times, reverse=True)


def test_without_memory_recorded_there_are_no_bytes(tmp_path: Path) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.ones(3)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    table = op_table([tmp_path / "trace.json"])
    assert table.peak_bytes is None
    assert table.device_busy_s is None
    assert {row.self_bytes for row in table.rows} == {None}


def test_the_peak_of_memory_is_what_was_held_at_once(tmp_path: Path) -> None:
    def two_then_one() -> None:
        first, second = torch.ones(1000), torch.ones(500)
        del first, second
        torch.ones(1200)

    _recorded(two_then_one, tmp_path / "trace.json")
    assert op_table([tmp_path / "trace.json"]).peak_bytes == 4 * (1000 + 500)


def test_a_trace_that_was_cut_short_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    _recorded(STEPS["training"], whole)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    assert 0 < len(op_table([cut]).rows) <= len(op_table([whole]).rows)
    cut.write_bytes(b"")
    assert op_table([cut]).rows == []


@pytest.mark.parametrize("characters", [1, 7, 1000])
def test_a_trace_is_read_in_blocks_of_any_size(
    characters: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.ones(3)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    expected = op_table([tmp_path / "trace.json"])
    monkeypatch.setattr(trace_events, "BLOCK_CHARACTERS", characters)
    assert op_table([tmp_path / "trace.json"]) == expected


def test_a_device_is_busy_while_any_of_its_kernels_runs(tmp_path: Path) -> None:
    """As CUPTI's activities are exported; written by hand, since few test machines have a GPU."""
    at = {"pid": 0, "tid": 7, "ph": "X"}
    events = [
        {**at, "cat": "kernel", "name": "gemm", "ts": 10.0, "dur": 5.0},
        {**at, "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 13.0, "dur": 4.0},
        {**at, "cat": "kernel", "name": "relu", "ts": 30.0, "dur": 1.0},
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    table = op_table([tmp_path / "trace.json"])
    assert table.device_busy_s == pytest.approx(8e-6)
    assert table.rows == []
