"""Run a command on GPUs that no other job has: pick, lock, and become the command."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from pttool.core.gpu.locks import Booking, book, picking, unlocked
from pttool.core.gpu.nvml import session
from pttool.core.gpu.pick import TooFewError, lacking
from pttool.core.gpu.picking import Conditions, fitting, judge
from pttool.core.gpu.snapshot import take_snapshot
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
    what is waited for.
    """
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"{command[0]}: no such command", "a script needs its path: ./train.sh")
    with session():
        booking = _booked(conditions, timeout_s, say)
    _become(program, command, booking)


def _booked(
    conditions: Conditions, timeout_s: float | None, say: Callable[[str], object]
) -> Booking:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    is_told = False
    while True:
        booking, lack = _try(conditions, deadline)
        if booking is not None:
            return booking
        left_s = POLL_S if deadline is None else deadline - time.monotonic()
        if left_s <= 0:
            raise lack
        if not is_told:
            say(f"waiting: {lack.message} ({lack.hint})")
            is_told = True
        time.sleep(min(POLL_S, left_s))


def _try(conditions: Conditions, deadline: float | None) -> tuple[Booking | None, TooFewError]:
    """Return a booking, or what is lacking; raises it where no waiting helps."""
    with picking(deadline) as is_alone:
        if not is_alone:
            return None, TooFewError("other processes are picking GPUs", "try again", can_pass=True)
        judged = judge(take_snapshot(), conditions)
        free = unlocked([each.uuid for each in fitting(judged)])
        booking = book(free, conditions.count)
    lack = lacking(judged, len(free), conditions.count)
    if not lack.can_pass:
        raise lack
    return booking, lack


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
