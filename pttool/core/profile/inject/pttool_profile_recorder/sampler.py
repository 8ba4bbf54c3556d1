"""A thread that looks, many times a second, at what the script's thread is doing."""

import sys
from _thread import allocate_lock, start_new_thread
from time import perf_counter, thread_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from .notes import Notes

DEEPEST = 64
MOST_STACKS = 4_000
MOST_WRITTEN = 400
# Files are written soon at first, for scripts that end at once, and never 2 s apart.
FIRST_WRITE_S, LONGEST_WRITE_S = 0.2, 1.6
IDLE_S = 0.2  # between looks at the clock when no stacks are sampled


class Sampler:
    """Counts stacks and has the recording written, in a thread that the script can't see.

    It is a thread of `_thread`, which `threading` doesn't know; it is stopped before each fork,
    since a child of a process with two threads is not safe, and Python warns of it.
    """

    def __init__(self, hz: float, folder: str, notes: "Notes") -> None:
        self.hz, self.count, self.cpu_s = hz, 0, 0.0
        self._own_folder, self._notes = folder, notes
        self._stacks: dict[tuple[Any, ...], int] = {}
        self._codes: dict[int, CodeType] = {}
        self._wake = allocate_lock()
        self._ended = allocate_lock()
        self._is_running = False
        self._work: tuple[int, Callable[[], str], Callable[[], None]] | None = None

    def start(self, thread: int, phase: "Callable[[], str]", write: "Callable[[], None]") -> None:
        """Sample a thread; `phase` says what it is at, nothing where that is of no interest.

        `write` is called every 2 s at most.
        """
        self._work = (thread, phase, write)
        self.resume()

    def pause(self) -> None:
        """Stop the thread; return once it has ended."""
        if self._is_running:
            self._is_running = False
            self._wake.release()
            self._ended.acquire()

    def resume(self) -> None:
        """Start the thread where there is something to do for it."""
        if self._work is not None and not self._is_running:
            self._is_running = True
            self._wake, self._ended = allocate_lock(), allocate_lock()
            self._wake.acquire()
            self._ended.acquire()
            start_new_thread(self._run, self._work)

    def forget(self) -> None:
        """Begin anew in a forked child, which has no thread of its parent's but its own."""
        self._is_running, self._work = False, None
        self.count, self.cpu_s = 0, 0.0
        self._stacks = {}

    def written(self) -> "dict[str, Any]":
        """Return the stacks seen most often, as pttool.core.profile.recording.Samples."""
        frames: dict[tuple[int, int], int] = {}
        stacks = sorted(self._stacks.copy().items(), key=lambda each: -each[1])[:MOST_WRITTEN]
        rows = [
            (phase, count, [frames.setdefault(frame, len(frames)) for frame in reversed(stack)])
            for (phase, *stack), count in stacks
        ]
        return {
            "hz": self.hz,
            "count": self.count,
            "stacks": rows,
            "frames": [self._described(*frame) for frame in frames],
        }

    def _described(self, code: int, line: int) -> tuple[str, int, str]:
        of = self._codes[code]
        return of.co_filename, line, of.co_qualname

    def _run(self, thread: int, phase: "Callable[[], str]", write: "Callable[[], None]") -> None:
        ended, wake, wait_s = self._ended, self._wake, 1 / self.hz if self.hz > 0 else IDLE_S
        cpu_s = thread_time()
        write_s = FIRST_WRITE_S
        next_s = perf_counter() + write_s
        try:
            while not wake.acquire(timeout=wait_s):
                with self._notes:
                    if self.hz > 0 and (now_in := phase()):
                        self._sample(thread, now_in)
                    if perf_counter() >= next_s:
                        write()
                        write_s = min(2 * write_s, LONGEST_WRITE_S)
                        next_s = perf_counter() + write_s
                    self.cpu_s, cpu_s = self.cpu_s + thread_time() - cpu_s, thread_time()
        finally:
            ended.release()

    def _sample(self, thread: int, phase: str) -> None:
        frame = sys._current_frames().get(thread)
        stack: list[Any] = [phase]
        while frame is not None and len(stack) <= DEEPEST:
            code = frame.f_code
            if not code.co_filename.startswith(self._own_folder):
                stack.append((id(code), frame.f_lineno or 0))
                self._codes.setdefault(id(code), code)  # kept, so that its id stays its own
            frame = frame.f_back
        key = tuple(stack)
        self.count += 1
        if key in self._stacks or len(self._stacks) < MOST_STACKS:
            self._stacks[key] = self._stacks.get(key, 0) + 1
