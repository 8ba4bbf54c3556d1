"""Which columns are drawn, over which one, and what the runs are called."""

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pttool.core.curve.logs import Log
from pttool.errors import InputError, UsageError

# Where a log counts its progress, the finest first.
USUAL_X = ("step", "global_step", "_step", "steps", "iteration", "iter", "epoch")
# Columns that are no curves unless they are asked for.
NO_CURVES = (
    *USUAL_X,
    "time_s", "time", "timestamp", "_timestamp", "wall_time", "_runtime", "elapsed", "date",
)  # fmt: skip
ROW = "row"
MOST_PANELS = 6


def choose_columns(logs: Sequence[Log], patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns to draw, and those left out because there are so many.

    Each pattern is a name or a glob; without patterns, all that are numbers and no count of
    progress, MOST_PANELS at most. Raises UsageError for a pattern that no column matches, and
    InputError for a column that holds text.
    """
    known = list(dict.fromkeys(key for log in logs for key in log.numeric))
    if not patterns:
        curves = [key for key in known if key.lower() not in NO_CURVES]
        if not curves:
            raise InputError(f"{logs[0].name}: has no column to draw", _listed(known))
        return curves[:MOST_PANELS], curves[MOST_PANELS:]
    chosen: list[str] = []
    for pattern in patterns:
        found = [key for key in known if pattern == key] or [
            key for key in known if fnmatchcase(key, pattern)
        ]
        if not found:
            raise _unknown(pattern, logs, known)
        chosen += found
    return list(dict.fromkeys(chosen)), []


def choose_x(logs: Sequence[Log], wanted: str | None) -> str:
    """Return the column that all logs are drawn over, ROW where they share none of the usual ones.

    Names are compared without regard to case. Raises UsageError for a `wanted` one that no log has.
    """
    shared = [{key.lower() for key in log.numeric} for log in logs]
    if wanted is None:
        return next((key for key in USUAL_X if all(key in keys for keys in shared)), ROW)
    if wanted != ROW and not any(wanted.lower() in keys for keys in shared):
        known = list(dict.fromkeys(key for log in logs for key in log.numeric))
        raise _unknown(wanted, logs, [*known, ROW])
    return wanted


def column(log: Log, name: str) -> str | None:
    """Return a log's own spelling of a column of numbers."""
    if name in log.numeric:
        return name
    return next((key for key in log.numeric if key.lower() == name.lower()), None)


def run_names(logs: Sequence[Log]) -> list[str]:
    """Return what tells the logs' paths apart: without the folders and names that all share."""
    if len(logs) == 1:
        return [logs[0].name]
    paths = [log.name.split(os.sep) for log in logs]
    while all(len(path) > 1 for path in paths) and len({path[0] for path in paths}) == 1:
        paths = [path[1:] for path in paths]
    while all(len(path) > 1 for path in paths) and len({path[-1] for path in paths}) == 1:
        paths = [path[:-1] for path in paths]
    return [os.sep.join(path) for path in paths]


def _unknown(name: str, logs: Sequence[Log], known: Sequence[str]) -> UsageError | InputError:
    for log in logs:
        if name in log.texts:
            message = f"{log.name}: column {name!r} is no column of numbers: {log.texts[name]}"
            return InputError(message, _listed(known))
    meant = get_close_matches(name, known, 2)
    hint = f"Did you mean {' or '.join(map(repr, meant))}?" if meant else _listed(known)
    return UsageError(f"no column of the logs matches {name!r}", hint)


def _listed(known: Iterable[str]) -> str:
    return f"its columns of numbers: {', '.join(known) or 'none'}"
