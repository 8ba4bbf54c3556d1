"""Real processes to look at and to end: polite, stubborn, another user's, orphans."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pttool.core.gpu.proc import ProcessEntry, read_process

NOBODY = 65534
_LIVE = """
import os, signal, sys
kind, *paths = sys.argv[1:]
kept = [os.open(path, os.O_RDONLY) for path in paths]
if kind == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if kind == "parent":
    child = os.fork()
    if child:
        print(child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
else:
    print("ready", flush=True)
while True:
    signal.pause()
"""


class Processes:
    """Starts processes that do nothing until they are ended, and ends those that are left."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []
        self._orphans: list[ProcessEntry] = []

    def start(self, kind: str = "polite", opens: Sequence[Path] = ()) -> ProcessEntry:
        """Start a process that has files open and ends on SIGTERM, unless it is "stubborn"."""
        process = self._popen(_python(kind, opens))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return entry(process.pid)

    def orphan(self, opens: Sequence[Path] = ()) -> ProcessEntry:
        """Start a process whose parent is killed, as data-loader workers are left behind."""
        parent = self._popen(_python("parent", opens))
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()
        self._orphans.append(entry(pid))
        return self._orphans[-1]

    def of_nobody(self) -> ProcessEntry:
        """Start a process of the user nobody, who may not be let at this Python."""
        return entry(self._popen(["/bin/sleep", "3600"], NOBODY).pid)

    def of_program(self, program: str, name: Path) -> ProcessEntry:
        """Start a program that waits an hour under another name."""
        name.symlink_to(program)
        return _executed(self._popen([str(name), "3600"]).pid, name.name)

    def in_container(self) -> ProcessEntry:
        """Start a process in a PID namespace of its own, as root can."""
        parent = self._popen(["unshare", "--pid", "--fork", "--kill-child", "sleep", "3600"]).pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        while not children.read_text():
            pass
        return _executed(int(children.read_text()), "sleep")

    def exit_code(self, process: ProcessEntry) -> int:
        """Wait for the end of a process and return its exit code, -N for signal N."""
        (found,) = (started for started in self._started if started.pid == process.pid)
        return found.wait(timeout=30)

    def is_alive(self, process: ProcessEntry) -> bool:
        """Return whether this very process lives."""
        now = read_process(process.pid)
        return now is not None and not now.has_ended and now.started_ticks == process.started_ticks

    def end_all(self) -> None:
        """Kill and reap what is left."""
        for process in self._started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        for process_entry in self._orphans:
            if self.is_alive(process_entry):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process_entry.pid, signal.SIGKILL)

    def _popen(self, command: list[str], user: int | None = None) -> subprocess.Popen[str]:
        self._started.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                user=user,
            )
        )
        return self._started[-1]


def _python(kind: str, opens: Sequence[Path]) -> list[str]:
    return [sys.executable, "-S", "-c", _LIVE, kind, *map(str, opens)]


def _executed(pid: int, name: str) -> ProcessEntry:
    """Return a process as soon as it has become the program of this name."""
    while (found := entry(pid)).name != name:
        pass
    return found


def entry(pid: int) -> ProcessEntry:
    """Return what /proc says of a process that is there."""
    found = read_process(pid)
    assert found is not None
    return found


def as_nobody(action: Callable[[], object]) -> bytes:
    """Run an action in a forked process of the user nobody; return the repr of its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, repr(action()).encode())
        finally:
            os._exit(0)  # and never go on as a second pytest
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        result = stream.read()
    os.waitpid(child, 0)
    return result


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Processes that are gone when the test is over."""
    started = Processes()
    yield started
    started.end_all()
