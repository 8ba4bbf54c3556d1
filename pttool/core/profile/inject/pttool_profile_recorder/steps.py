"""Steps: where one ends and the next begins, what each took, and which are steady."""

from .clock import PHASES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .clock import Clock
    from .windows import Windows

WARM_UP = 3
PROFILER = PHASES.index("profiler")
MOST_ROWS = 1024
# What marks a step, the best mark last: a batch that a loader hands out beats an optimizer's step,
# and that beats a root module's call, which is all that inference without a loader has.
SOURCES = ("forward", "optimizer", "loader")
# Modules are timed in every step at first, then in one of eight: a hook costs about as much as a
# tiny module.
MEASURED_STEPS, MEASURED_EVERY = 64, 8
# What is done for each step alone is done with cold caches, at several times its cost in a loop.
BATCH = 64


class Steps:
    """Counts steps by the best mark that the script gives; a better one begins the count anew.

    `rows` and the steady sums are brought up to date for many steps at once, by `settle`.
    """

    def __init__(self, clock: "Clock", windows: "Windows") -> None:
        self.measures_modules = True
        self.is_awaited = False  # set by the thread that writes, for the next time
        self._clock, self._windows = clock, windows
        self._leading_root: Any = None
        self._begin(None)

    def _begin(self, source: str | None) -> None:
        self.source = source
        self.count = self.measured_count = 0
        self.stride = 1
        self.rows: list[list[float]] = []
        self.steady_count = self._settled_count = 0
        self.steady_s = [0.0] * len(PHASES)
        # The seconds of each phase at a step's begin and end, and whether it was profiled.
        self._ended: list[tuple[list[float], list[float], bool]] = []
        self._opened: list[float] | None = None
        self._was_profiled = False

    def boundary(self, source: str) -> None:
        """End a step and begin the next, where this mark is what steps are counted by.

        Called when a phase has just begun or ended, so that the clock is settled.
        """
        if source != self.source:
            if self.source is not None and SOURCES.index(source) < SOURCES.index(self.source):
                return
            self._begin(source)
        self.end()
        windows, count = self._windows, self.count
        if windows.is_due(count):
            windows.at_boundary(count)
        self._was_profiled = windows.is_open
        is_measured = not windows.is_open and (
            count < MEASURED_STEPS or count % MEASURED_EVERY == 0
        )
        self.measures_modules = is_measured
        self.measured_count += is_measured
        self._opened = self._clock.settled()

    def optimizer_stepped(self) -> None:
        """Take the end of an optimizer's step: a mark, and the best moment to profile from."""
        if self.source != "loader":
            self.boundary("optimizer")
        elif self._opened is not None and self._windows.is_due(self.count + 1):
            self._windows.at_optimizer(self.count + 1)

    def root_called(self, root: "Any") -> None:
        """Take a root module's call as a mark, where there is no better one: of one root only."""
        if self.source is None or self.source == "forward":
            from weakref import ref

            leading = None if self._leading_root is None else self._leading_root()
            if leading is None:
                self._leading_root = ref(root)
            if leading is None or leading is root:
                self.boundary("forward")

    def cancel(self) -> None:
        """Forget the step just begun: there was no batch for it."""
        self.measured_count -= self._opened is not None and self.measures_modules
        self._opened = None

    def end(self) -> None:
        """End the step that is open, if one is."""
        if self._opened is not None:
            is_profiled = self._was_profiled or self._windows.is_open
            self._ended.append((self._opened, self._clock.settled(), is_profiled))
            self.count += 1
            self._opened = None
            if len(self._ended) >= BATCH or self.is_awaited:
                self.settle()

    def settle(self) -> None:
        """Bring `rows`, `steady_count` and `steady_s` up to date; called by the main thread."""
        self.is_awaited = False
        ended, self._ended = self._ended, []
        for before, after, is_profiled in ended:
            seconds = [now - then for now, then in zip(after, before, strict=True)]
            index = self._settled_count
            self._settled_count += 1
            is_steady = index >= WARM_UP and not is_profiled and seconds[PROFILER] == 0
            if is_steady:
                self.steady_count += 1
                both = zip(self.steady_s, seconds, strict=True)
                self.steady_s = [total + each for total, each in both]
            if index % self.stride == 0:
                start_s = self._clock.start_s + sum(before)
                self.rows.append([index, start_s, is_steady, *seconds])
            if len(self.rows) >= MOST_ROWS:
                self.rows = self.rows[::2]
                self.stride *= 2
