"""Which phase the main thread is in, and how long it has been in each."""

from _thread import get_ident
from time import perf_counter

PHASES = (
    "startup", "data_wait", "forward", "backward", "optimizer", "save", "other", "profiler",
)  # fmt: skip
# What may interrupt a phase; anything else counts as part of it, as a module that a dataset calls.
INTERRUPTING = {
    "startup": frozenset(PHASES),
    "other": frozenset(PHASES),
    "forward": frozenset({"data_wait", "backward", "save", "profiler"}),
    "optimizer": frozenset({"forward", "backward", "profiler"}),  # a closure, as LBFGS has
    "data_wait": frozenset({"profiler"}),
    "backward": frozenset({"profiler"}),
    "save": frozenset({"profiler"}),
    "profiler": frozenset[str](),
}


class Clock:
    """Exclusive times of the phases: at any moment the thread is in one of them.

    `startup` lasts until the first of the others. In other threads, and in forked children, it
    stands still.
    """

    def __init__(self) -> None:
        self.start_s = self.since_s = perf_counter()
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.calls = dict.fromkeys(PHASES, 0)
        self.phase = "startup"
        self.thread = get_ident()
        self.is_on = True

    def enter(self, phase: str) -> str | None:
        """Begin a phase; return the one to come back to, None where this counts as part of it."""
        before = self.phase
        if get_ident() != self.thread or not self.is_on or phase not in INTERRUPTING[before]:
            return None
        self._switch(phase)
        self.calls[phase] += 1
        return "other" if before == "startup" and phase != "profiler" else before

    def leave(self, before: str | None) -> None:
        """End a phase that `enter` began."""
        if before is not None:
            self._switch(before)

    def settled(self) -> list[float]:
        """Return the seconds of each phase until `since_s`, when the present one began."""
        return list(self.seconds.values())

    def read(self) -> dict[str, float]:
        """Return the seconds of each phase until now; they sum to the time since the start."""
        seconds, phase, since_s = dict(self.seconds), self.phase, self.since_s
        seconds[phase] += perf_counter() - since_s
        return seconds

    def _switch(self, phase: str) -> None:
        now = perf_counter()
        self.seconds[self.phase] += now - self.since_s
        self.since_s = now
        self.phase = phase
