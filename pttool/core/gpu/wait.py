"""Wait until GPUs are free."""

import time

from pttool.core.gpu.nvml import session
from pttool.core.gpu.pick import TooFewError, pick
from pttool.core.gpu.picking import Conditions
from pttool.core.gpu.style import Style
from pttool.core.report import Report


def wait(
    conditions: Conditions,
    style: Style = Style.UUID,
    *,
    timeout_s: float | None = None,
    every_s: float = 2.0,
) -> Report:
    """Return what `pick` does as soon as there is enough to pick; `timeout_s` None is forever.

    Raises TooFewError when the time is up, or at once where waiting can't help, as for more
    GPUs than there are.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with session():  # starting the driver each time would take longer than to ask it
        while True:
            try:
                return pick(conditions, style)
            except TooFewError as error:
                left_s = every_s if deadline is None else deadline - time.monotonic()
                if not error.can_pass or left_s <= 0:
                    raise
            time.sleep(min(every_s, left_s))
