"""Ask a process of its own what may crash or hang: the one that asks goes on."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]  # the folder that pttool is imported from
GRACE_S = 1.0  # for a killed process to go; one that waits in the kernel for a driver stays


class Ending(StrEnum):
    """How a child ended."""

    DONE = "done"
    FAILED = "failed"  # with an exception or an exit code of its own
    CRASHED = "crashed"  # by a signal
    HUNG = "hung"  # and was killed when its time was up


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child told before it ended, and how it ended; `detail` is its last line or signal."""

    told: Mapping[str, Any] = field(default_factory=dict)
    ending: Ending = Ending.DONE
    detail: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it told all it had to tell."""
        return self.ending is Ending.DONE


class Child:
    """A Python process that runs the function `tell_all` of a module of pttool.

    Leaving its `with` block ends it, answered or not.
    """

    def __init__(self, module: str) -> None:
        """Start it. It has the environment of this process, but not the working folder on its path.

        Raises OSError where no process can be started.
        """
        script = (
            f"import sys; sys.path.append({str(ROOT)!r}); "
            f"from pttool.core.child_side import run_child; run_child({module!r})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        self._start = time.monotonic()
        self._answer: Answer | None = None

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        if self._answer is None:
            self._killed()

    def answer(self, limit_s: float) -> Answer:
        """Wait until the child ends, or `limit_s` seconds after its start; then it is killed."""
        if self._answer is None:
            self._answer = self._ended(limit_s)
        return self._answer

    def _ended(self, limit_s: float) -> Answer:
        remaining = max(0.0, self._start + limit_s - time.monotonic())
        try:
            stdout, stderr = self._process.communicate(timeout=remaining)
        except subprocess.TimeoutExpired:
            return Answer(_told(self._killed()), Ending.HUNG, f"no answer in {limit_s:g} s")
        code = self._process.returncode
        if code < 0:
            return Answer(_told(stdout), Ending.CRASHED, _signal_name(-code))
        last = (stderr.strip().splitlines() or [""])[-1]
        return Answer(_told(stdout), Ending.FAILED if code else Ending.DONE, last if code else "")

    def _killed(self) -> str:
        """Kill the child and return what it wrote. One that can't die now is left behind."""
        self._process.kill()
        try:
            return self._process.communicate(timeout=GRACE_S)[0]
        except subprocess.TimeoutExpired as error:
            written = error.stdout or b""
            return written.decode("utf-8", "replace") if isinstance(written, bytes) else written


def _told(stdout: str) -> dict[str, Any]:
    """Return what a child told, line by line; a line cut short by its end is left out."""
    values: dict[str, Any] = {}
    for line in stdout.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            values.update(json.loads(line))
    return values


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
