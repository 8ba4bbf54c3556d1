"""Run a script as plain Python runs it, with the recorder inside."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pttool.errors import UnavailableError

INJECT = Path(__file__).parent / "inject"
PREFIX = "PTTOOL_PROFILE_"
# A terminal sends these to every process of the foreground group: the script has them already.
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is recorded besides phases.

    `hz` stacks are sampled each second (0: none). torch.profiler is on for `window_steps` steps
    after the first `skip_steps`, and `windows` times in all, with ever longer gaps; 0 of either
    leaves it off. `modules` is whether modules are timed.
    """

    hz: float = 100.0
    skip_steps: int = 5
    window_steps: int = 3
    windows: int = 1
    shapes: bool = False
    memory: bool = False
    modules: bool = True


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended.

    `returncode` is negative for a signal; `start_s` and `end_s` are seconds of time.perf_counter
    just before it was started and just after it was waited for.
    """

    pid: int
    returncode: int
    was_interrupted: bool
    start_s: float
    end_s: float

    @property
    def exit_code(self) -> int:
        """The exit code as a shell tells it: 128 + the signal."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    @property
    def wall_s(self) -> float:
        """The script's wall time, its interpreter's start and end included."""
        return self.end_s - self.start_s


def launch(arguments: Sequence[str], settings: Settings, folder: Path) -> Ended:
    """Run `python ARGUMENTS...` with the recorder writing into a folder, and wait for its end.

    It has this process's standard streams, environment and working folder. SIGINT and SIGQUIT,
    which a terminal sends to both, are left to it; SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are handed
    on. Raises UnavailableError where no process can be started.
    """
    signals = _Signals()
    with signals.handled():
        start_s = time.perf_counter()
        process = _started(arguments, _environment(settings, folder))
        signals.forward_to(process)
        returncode = process.wait()
        end_s = time.perf_counter()
    was_interrupted = signals.was_interrupted or returncode == -signal.SIGINT
    return Ended(process.pid, returncode, was_interrupted, start_s, end_s)


def _started(arguments: Sequence[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            close_fds=False,  # what the shell opened for the script stays open
        )
    except OSError as error:
        raise UnavailableError(f"{sys.executable}: {error.strerror}") from error


def _environment(settings: Settings, folder: Path) -> dict[str, str]:
    """Return the environment that has Python import the recorder, which then takes it all out."""
    environment = dict(os.environ)
    given = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = f"{INJECT}{os.pathsep}{given}" if given else str(INJECT)
    if given is not None:
        environment[f"{PREFIX}PYTHONPATH"] = given
    return environment | {
        f"{PREFIX}FOLDER": str(folder),
        f"{PREFIX}HZ": str(settings.hz),
        f"{PREFIX}SKIP_STEPS": str(settings.skip_steps),
        f"{PREFIX}WINDOW_STEPS": str(settings.window_steps),
        f"{PREFIX}WINDOWS": str(settings.windows),
        f"{PREFIX}SHAPES": str(int(settings.shapes)),
        f"{PREFIX}MEMORY": str(int(settings.memory)),
        f"{PREFIX}MODULES": str(int(settings.modules)),
    }


class _Signals:
    """Handlers in place of those that would end this process before its script.

    They are functions, not SIG_IGN, which the script would inherit; a signal that this process was
    started with ignored, as under nohup, stays ignored for both.
    """

    def __init__(self) -> None:
        self.was_interrupted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle them until the block ends."""
        kept = {each: signal.getsignal(each) for each in (*FROM_TERMINAL, *FORWARDED)}
        for each, handler in kept.items():
            if handler is not signal.SIG_IGN:
                signal.signal(each, self._note if each in FROM_TERMINAL else self._forward)
        try:
            yield
        finally:
            for each, handler in kept.items():
                signal.signal(each, handler)

    def forward_to(self, process: "subprocess.Popen[bytes]") -> None:
        """Hand on what arrived before the script's process was known, and what will arrive."""
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.was_interrupted |= number == signal.SIGINT

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)
