"""The op table of exported traces, equal to torch.profiler's key_averages at a part of its CPU.

A call's self time is its time without the calls directly inside it, on its own thread.

The one rule for nested duplicates (torch's `EventList._remove_dup_nodes`): a call whose only child
has the same name is one call with that child, as where an overload calls another. All else counts
as it stands, so an op that calls itself beside other ops has the inner time in its total twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pttool.core.profile.allocations import Allocations
from pttool.core.profile.trace_events import trace_events
from pttool.core.profile.types import OpRow

MEMORY = "[memory]"
_PYTHON = "python_function"
_HOST = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", _PYTHON}
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
# What torch's own table leaves out: `profiler_util._filter_name`.
_LEFT_OUT = {
    "profiler::_record_function_enter", "profiler::_record_function_enter_new",
    "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version",
}  # fmt: skip
_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class OpTable:
    """The ops of all windows, largest self time first.

    `peak_bytes` is the most that the allocators held at once in a window, beyond what they held
    when it was opened; None where memory was not recorded. `device_busy_s` are the seconds in which
    a kernel or copy ran, None where the traces know no device.
    """

    rows: list[OpRow]
    peak_bytes: int | None
    device_busy_s: float | None


def op_table(traces: Iterable[Path], *, by_shape: bool = False) -> OpTable:
    """Return the ops of traces that torch.profiler exported, summed.

    `by_shape` makes a row of each op and shapes of its inputs, where a list of tensors is []. Bytes
    are those allocated less those freed while the op ran, by any thread, on the CPU and devices;
    what no op did is the row "[memory]".

    Raises OSError for a file that can't be read.
    """
    totals: dict[tuple[str, ...], _Total] = {}
    windows = [_sum_up(_read(trace), totals, by_shape) for trace in traces]
    peaks = [peak for peak, _ in windows if peak is not None]
    busy = [seconds for _, seconds in windows if seconds is not None]
    rows = [total.row(by_shape=by_shape, with_memory=bool(peaks)) for total in totals.values()]
    rows.sort(key=lambda row: (-row.self_ms, row.name))
    return OpTable(rows, max(peaks, default=None), sum(busy) if busy else None)


@dataclass(slots=True, eq=False)
class _Call:
    """One call on one thread; times are nanoseconds."""

    name: str
    kind: str
    thread: tuple[Any, Any]
    start: int
    end: int
    shapes: list[list[int]]
    self_ns: int = 0
    bytes: int = 0
    self_bytes: int = 0
    parent: "_Call | None" = None
    children: int = 0
    is_folded: bool = False


@dataclass(slots=True)
class _Window:
    calls: list[_Call] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)
    device: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Total:
    name: str
    shapes: list[list[int]]
    calls: int = 0
    self_ns: int = 0
    total_ns: int = 0
    self_bytes: int = 0

    def row(self, *, by_shape: bool, with_memory: bool) -> OpRow:
        return OpRow(
            self.name,
            self.calls,
            self.self_ns / _NS_PER_MS,
            self.total_ns / _NS_PER_MS,
            self.self_bytes if with_memory else None,
            self.shapes if by_shape else None,
        )


def _read(trace: Path) -> _Window:
    window = _Window()
    for event in trace_events(trace):
        kind, name = event.get("cat"), event.get("name")
        if name == MEMORY:
            window.memory.append((_ns(event["ts"]), event["args"]["Bytes"]))
        elif kind in _HOST and name not in _LEFT_OUT:
            window.calls.append(_call(event))
        elif kind in _DEVICE:
            window.device.append((_ns(event["ts"]), _ns(event["ts"]) + _ns(event["dur"])))
    return window


def _call(event: Mapping[str, Any]) -> _Call:
    start, duration = _ns(event["ts"]), _ns(event["dur"])
    name = "ProfilerStep*" if event["name"].startswith("ProfilerStep#") else event["name"]
    inputs = event.get("args", {}).get("Input Dims", [])
    shapes = [[] if shape and isinstance(shape[0], list) else shape for shape in inputs]
    thread = (event["pid"], event["tid"])
    return _Call(name, event["cat"], thread, start, start + duration, shapes, duration)


def _ns(microseconds: float) -> int:
    """Traces give microseconds with three decimals; whole nanoseconds nest without rounding."""
    return round(microseconds * 1000)


def _sum_up(
    window: _Window, totals: dict[tuple[str, ...], _Total], by_shape: bool
) -> tuple[int | None, float | None]:
    """Add a window to the totals; return its peak of memory and how long a device was busy."""
    allocations = Allocations(window.memory)
    for call in window.calls:
        call.bytes = call.self_bytes = allocations.between(call.start, call.end)
    for call in _folded(_nested(window.calls)):
        shapes = str(call.shapes) if by_shape else ""
        key = (call.name, str(call.kind == "user_annotation"), shapes)
        total = totals.setdefault(key, _Total(call.name, call.shapes))
        total.calls += 1
        total.self_ns += call.self_ns
        total.total_ns += call.end - call.start
        total.self_bytes += call.self_bytes
    changes, size = allocations.outside(
        (call.start for call in window.calls), (call.end for call in window.calls)
    )
    if changes:
        total = totals.setdefault((MEMORY,), _Total(MEMORY, []))
        total.calls += changes
        total.self_bytes += size
    busy = _covered(window.device) / 1e9 if window.device else None
    return allocations.peak if allocations else None, busy


def _nested(calls: list[_Call]) -> list[_Call]:
    """Find each call's parent, and return the calls with parents before their children.

    The parent is the innermost call of the thread that holds all of it. One that is left but not
    held, as its end lies behind, is nobody's parent any more.
    """
    ordered = sorted(calls, key=lambda call: (call.thread, call.start, -call.end))
    around: list[_Call] = []
    for call in ordered:
        while around and not _holds(around[-1], call):
            around.pop()
        if around:
            parent = call.parent = around[-1]
            parent.children += 1
            parent.self_ns -= call.end - call.start
            parent.self_bytes -= call.bytes
        around.append(call)
    return ordered


def _holds(outer: _Call, inner: _Call) -> bool:
    return outer.thread == inner.thread and inner.start < outer.end and inner.end <= outer.end


def _folded(ordered: list[_Call]) -> Iterator[_Call]:
    """Yield the calls of ops with nested duplicates made one; children come before parents."""
    for call in reversed(ordered):
        parent = call.parent
        if parent is not None and parent.name == call.name and parent.children == 1:
            parent.self_ns += call.self_ns
            parent.self_bytes += call.self_bytes
            parent.children = call.children
            call.is_folded = True
    return (call for call in ordered if not call.is_folded and call.kind != _PYTHON)


def _covered(intervals: list[tuple[int, int]]) -> int:
    """Return the length of the union of intervals."""
    covered = reached = 0
    for start, end in sorted(intervals):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered
