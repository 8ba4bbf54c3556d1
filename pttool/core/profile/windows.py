"""Which steps torch.profiler is on for, as a command line says it."""

import re

from pttool.errors import UsageError


def parse_window(text: str) -> tuple[int, int]:
    """Return the steps to skip and the steps to record of SKIP:STEPS; raises UsageError."""
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if match is None or int(match[2]) == 0:
        raise UsageError(
            f"--window {text}: is no SKIP:STEPS", "as 5:3: skip 5 steps, record the next 3"
        )
    return int(match[1]), int(match[2])
