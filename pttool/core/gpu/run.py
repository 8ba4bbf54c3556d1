"""Run a command on GPUs that no other job has: pick, lock, and become the command."""

import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pttool.core.gpu.locks import Booking, book, picking_lock, unlocked
from pttool.core.gpu.nvml import session
from pttool.core.gpu.pick import TooFewError, lacking
from pttool.core.gpu.picking import Conditions, fitting, judge, outside_note
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.visible import visible_here
from pttool.errors import UsageError

POLL_S = 0.5


def run(
    command: Sequence[str],
    conditions: Conditions,
    *,
    timeout_s: float | None,
    say: Callable[[str], object],
) -> NoReturn:
    """Wait for GPUs that hold to the conditions and that no other run has, and run on them.

    The command takes this process's place, with the locks, CUDA_DEVICE_ORDER=PCI_BUS_ID and the
    UUIDs in CUDA_VISIBLE_DEVICES; its exit code is its own. The locks are free when it and what it
    left them to are dead.

    Raises TooFewError where the GPUs aren't free within `timeout_s` seconds, or never can be;
    UsageError for a command that can't be run; NoDriverError without GPUs. `say` is told, once,
    what is waited for, and which of the GPUs CUDA_VISIBLE_DEVICES hid from this process.
    """
    program = _program(command[0])
    with session():
        booking = _booked(conditions, timeout_s, say)
    _become(program, command, booking)


def _program(name: str) -> str:
    program = shutil.which(name)
    if program is not None:
        return program
    if os.sep in name and Path(name).is_file():
        raise UsageError(f"{name}: is not executable", f"chmod +x {shlex.quote(name)}")
    raise UsageError(f"{name}: no such command", "a script needs its path: ./train.sh")


def _booked(
    conditions: Conditions, timeout_s: float | None, say: Callable[[str], object]
) -> Booking:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    is_told = False
    while True:
        try:
            booking, note = _try(conditions, deadline)
        except TooFewError as lack:
            left_s = POLL_S if deadline is None else deadline - time.monotonic()
            if not lack.can_pass or left_s <= 0:
                raise
            if not is_told:
                say(f"waiting: {lack.message} ({lack.hint})")
                is_told = True
            time.sleep(min(POLL_S, left_s))
        else:
            if note is not None:
                say(note)
            return booking


def _try(conditions: Conditions, deadline: float | None) -> tuple[Booking, str | None]:
    """Return a booking, and a note where it reaches beyond CUDA_VISIBLE_DEVICES.

    Raises TooFewError for what is lacking.
    """
    with picking_lock(deadline) as is_alone:
        if not is_alone:
            raise TooFewError("other processes are picking GPUs", "try again", can_pass=True)
        snapshot = take_snapshot()
        seen = visible_here(snapshot.gpus)
        judged = judge(snapshot, conditions, seen)
        free = unlocked([each.uuid for each in fitting(judged)])
        booking = book(free, conditions.count)
    if booking is None:
        raise lacking(judged, len(free), conditions.count)
    return booking, outside_note([each for each in judged if each.uuid in booking.uuids], seen)


def _become(program: str, command: Sequence[str], booking: Booking) -> NoReturn:
    booking.keep_over_exec()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and would hand on
        signal.signal(number, signal.SIG_DFL)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(booking.uuids)
    try:
        os.execv(program, list(command))
    except OSError as error:
        raise UsageError(
            f"{command[0]}: {error.strerror}", "a script needs a first line as #!/bin/sh"
        ) from error
