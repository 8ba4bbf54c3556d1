"""Windows of torch.profiler over a few steps."""

import os
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .clock import Clock
    from .notes import Notes
    from .settings import Settings

# Kineto reads its log level when it is first used; its lines would be on the script's stderr.
LOG_LEVEL, SILENT = "KINETO_LOG_LEVEL", "99"
OWN_PROFILER = "the script profiles itself: its profiler was left alone, ops weren't recorded"


class Windows:
    """Opens and closes the profiler so that each window holds a whole number of steps.

    That is where the optimizer has stepped, if it does, so that a script's own stopwatch around
    its loader sees none of it; else where the loader is asked for a batch. The profiler is driven
    through torch.autograd: torch.profiler's own start imports all of Inductor (1 s), and its stop
    parses each event in Python (1 s for 16,000).
    """

    def __init__(self, settings: "Settings", clock: "Clock", notes: "Notes") -> None:
        self.written: list[dict[str, Any]] = []
        self.is_open = False
        self._settings, self._clock, self._notes = settings, clock, notes
        self._torch: ModuleType | None = None
        self._is_off = settings.window_steps <= 0 or settings.windows <= 0
        self._anchor = ""
        self._next = self._close_at = settings.skip_steps
        self._start_s = 0.0
        self._first = self._seen = self._made = 0

    def use(self, torch: "ModuleType") -> None:
        """Say that torch is here."""
        self._torch = torch

    def is_due(self, step: int) -> bool:
        """Return whether there may be something to do where step number `step` begins."""
        return self.is_open or (step >= self._next and not self._is_off)

    def at_boundary(self, step: int) -> None:
        """Open or close where step number `step` begins."""
        if self._anchor == "boundary":
            self._seen = step
        if self.is_open and step >= self._close_at + (self._anchor == "optimizer"):
            self._close()
        if not self.is_open and step >= self._next:
            self._open("boundary", step)

    def at_optimizer(self, upcoming: int) -> None:
        """Open or close after an optimizer's step, before step number `upcoming`."""
        if self._anchor == "optimizer":
            self._seen = upcoming
        if self.is_open and self._anchor == "optimizer" and upcoming >= self._close_at:
            self._close()
        elif not self.is_open and upcoming == self._next:
            self._open("optimizer", upcoming)

    def script_profiles(self) -> None:
        """Leave the profiler, of which there is one, to the script from here on."""
        if not self._is_off:
            self._is_off = True
            self._notes.add(OWN_PROFILER)
        self.finish()

    def finish(self) -> None:
        """Close an open window: leaving Python with the profiler on may crash."""
        if self.is_open:
            self._close()

    def _open(self, anchor: str, step: int) -> None:
        if self._torch is None or self._is_off:
            return
        before = self._clock.enter("profiler")
        if before is None:
            return
        with self._notes:
            if self._torch.autograd._profiler_enabled():
                self.script_profiles()
            else:
                self._start_profiler(self._torch)
                self.is_open, self._anchor = True, anchor
                self._first = self._seen = step
                self._close_at = step + self._settings.window_steps
                self._start_s = perf_counter()
        self._clock.leave(before)

    def _start_profiler(self, torch: "ModuleType") -> None:
        autograd, settings = torch.autograd, self._settings
        if LOG_LEVEL not in os.environ:
            os.putenv(LOG_LEVEL, SILENT)  # os.environ, which the script sees, stays as it is
        activities = {autograd.ProfilerActivity.CPU}
        if torch.cuda.is_initialized():
            activities.add(autograd.ProfilerActivity.CUDA)
        config = autograd.ProfilerConfig(
            autograd.ProfilerState.KINETO, settings.shapes, settings.memory, False, False, False,
            torch._C._profiler._ExperimentalConfig(),
        )  # fmt: skip
        autograd._prepare_profiler(config, activities)
        autograd._enable_profiler(config, activities)

    def _close(self) -> None:
        """Close the window; one without a whole step counts for nothing."""
        if self._torch is None:
            return
        before = self._clock.enter("profiler")
        self.is_open = False
        end_s = perf_counter()
        with self._notes:
            result = self._torch.autograd._disable_profiler()
            if LOG_LEVEL not in os.environ:
                os.unsetenv(LOG_LEVEL)
            if self._seen > self._first:
                self._save(result, end_s)
        self._clock.leave(before)

    def _save(self, result: "Any", end_s: float) -> None:
        name = f"trace-{os.getpid()}-{self._made}.json"
        self._made += 1
        self._next = self._settings.skip_steps + self._settings.window_steps * (4**self._made - 1)
        self._is_off = self._is_off or self._made >= self._settings.windows
        result.save(os.path.join(self._settings.folder, name))
        self.written.append(
            {
                "trace": name,
                "first_step": self._first,
                "steps": self._seen - self._first,
                "start_s": self._start_s,
                "end_s": end_s,
            }
        )
