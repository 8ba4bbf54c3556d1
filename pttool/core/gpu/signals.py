"""End processes without ever hitting another one: the only place that sends a signal."""

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from pttool.core.gpu.proc import ProcessEntry, ancestors, read_process
from pttool.errors import UnavailableError

# A PID is the kernel's, whatever folder a test lets the rest read instead of /proc.
PROC = Path("/proc")
# After SIGKILL only the kernel keeps a process: one that waits in the driver may never end.
KILLED_WAIT_S = 5.0


class Outcome(StrEnum):
    """What became of a process that was to end."""

    TERMINATED = "ended_by_sigterm"
    KILLED = "ended_by_sigkill"
    GONE = "already_ended"
    REUSED = "pid_reused"
    NOT_PERMITTED = "not_permitted"
    FORBIDDEN = "refused"
    SURVIVED = "still_alive"


def forbidden(pid: int) -> str | None:
    """Return why this PID is never signalled, if it isn't: init, pttool, and what it runs under."""
    if pid <= 1:
        return "no process to end"
    if pid == os.getpid():
        return "pttool itself"
    if pid in ancestors(os.getpid(), PROC):
        return "pttool runs under it"
    return None


def end(processes: Sequence[ProcessEntry], grace_s: float) -> dict[int, Outcome]:
    """Send SIGTERM to all, and SIGKILL to those that are alive `grace_s` seconds later.

    Each is opened as a pidfd, which stands for one process for good, and only then compared with
    what was seen: a PID that began at another time was re-used, and is left alone. A process that
    Ctrl-Z has stopped is continued, so that it can obey. Returns the outcome of each PID; raises
    UnavailableError on a kernel without pidfds, before anything is signalled.
    """
    with contextlib.ExitStack() as stack:
        opened = {process.pid: _open(process) for process in processes}
        alive = {pid: found for pid, found in opened.items() if not isinstance(found, Outcome)}
        for descriptor in alive.values():
            stack.callback(os.close, descriptor)
        outcomes = {pid: found for pid, found in opened.items() if isinstance(found, Outcome)}
        outcomes |= _signalled(alive, (signal.SIGTERM, signal.SIGCONT), grace_s, Outcome.TERMINATED)
        left = {pid: descriptor for pid, descriptor in alive.items() if pid not in outcomes}
        outcomes |= _signalled(left, (signal.SIGKILL,), KILLED_WAIT_S, Outcome.KILLED)
    return {process.pid: outcomes.get(process.pid, Outcome.SURVIVED) for process in processes}


def _open(process: ProcessEntry) -> int | Outcome:
    """Return a pidfd of this very process, or why there is none."""
    if forbidden(process.pid) is not None:
        return Outcome.FORBIDDEN
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return Outcome.GONE
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        raise UnavailableError(
            "this kernel or container has no pidfds (Linux 5.3), without which a PID may be "
            "another process by the time it is signalled",
            "end the processes by hand: kill PID",
        ) from error
    now = read_process(process.pid, PROC)
    if now is not None and now.started_ticks == process.started_ticks and not now.has_ended:
        return descriptor
    os.close(descriptor)
    is_other = now is not None and now.started_ticks != process.started_ticks
    return Outcome.REUSED if is_other else Outcome.GONE


def _signalled(
    pidfds: dict[int, int], numbers: Sequence[signal.Signals], wait_s: float, ended: Outcome
) -> dict[int, Outcome]:
    """Signal all; return the outcome of those that end in time, or may not be signalled."""
    outcomes: dict[int, Outcome] = {}
    for pid, descriptor in pidfds.items():
        try:
            for number in numbers:
                signal.pidfd_send_signal(descriptor, number)
        except PermissionError:
            outcomes[pid] = Outcome.NOT_PERMITTED
        except ProcessLookupError:
            outcomes[pid] = ended
    waiting = {descriptor: pid for pid, descriptor in pidfds.items() if pid not in outcomes}
    return outcomes | dict.fromkeys(_ending(waiting, wait_s), ended)


def _ending(waiting: dict[int, int], wait_s: float) -> Iterator[int]:
    """Yield the PID of each pidfd whose process ends within this time."""
    poll = select.poll()
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    left = set(waiting)
    deadline = time.monotonic() + wait_s
    while left:
        events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not events:
            return
        for descriptor, _ in events:
            poll.unregister(descriptor)
            left.discard(descriptor)
            yield waiting[descriptor]
