"""Time in each module, from hooks: `with_modules` of torch.profiler does nothing in eager mode."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pttool.core.model.names import Names
from pttool.core.model.trace import hooked

_NS_PER_MS = 1e6


@dataclass(slots=True)
class ModuleTime:
    """A module by its qualified name (the root's is empty), in one forward on average.

    `self_ms` leaves out the modules that it calls.
    """

    name: str
    type: str
    calls: float = 0
    self_ms: float = 0.0
    total_ms: float = 0.0


def module_times(
    model: nn.Module, call: Callable[[], object], *, device: str, runs: int
) -> list[ModuleTime]:
    """Make `runs` calls that run the model, and return its modules, largest self time first.

    Only forwards are seen. On "cuda" the device is waited for at both ends of each module, so that
    its time is its own. TorchScript takes no hooks: its modules are not among them.
    """
    clock = _Stopwatch(model, torch.cuda.synchronize if device == "cuda" else None)
    with hooked(model, clock.enter, clock.leave):
        for _ in range(runs):
            call()
    for found in clock.found.values():
        found.calls /= runs
        found.self_ms /= runs
        found.total_ms /= runs
    return sorted(clock.found.values(), key=lambda each: (-each.self_ms, each.name))


@dataclass(slots=True)
class _Running:
    """A call that has not ended: when it and its hook began, and what its children took."""

    module: nn.Module
    name: str
    hook_start: int
    start: int = 0
    children: int = 0


class _Stopwatch:
    def __init__(self, model: nn.Module, wait: Callable[[], None] | None) -> None:
        self.found: dict[str, ModuleTime] = {}
        self._model = model
        self._names = Names(model)
        self._wait = wait
        self._running: list[_Running] = []

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        begun = self._now()
        name = ""
        if self._running:
            caller = self._running[-1]
            name = self._names.of(module, caller.module, caller.name)
        self._running.append(_Running(module, name, begun))
        self._running[-1].start = self._now()

    def leave(self, module: nn.Module, args: Any, output: Any) -> None:
        end = self._now()
        ended = self._running.pop()
        kind = type(module).__name__
        found = self.found.setdefault(ended.name, ModuleTime(ended.name, kind))
        found.calls += 1
        found.total_ms += (end - ended.start) / _NS_PER_MS
        found.self_ms += (end - ended.start - ended.children) / _NS_PER_MS
        if self._running:
            # The hooks' own time is nobody's.
            self._running[-1].children += self._now() - ended.hook_start

    def _now(self) -> int:
        if self._wait is not None:
            self._wait()
        return time.perf_counter_ns()
