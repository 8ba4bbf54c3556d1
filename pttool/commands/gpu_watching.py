"""`pttool gpu info --watch`: drawn again in place on a terminal, NDJSON in a pipe."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from textwrap import wrap

from pttool.core.report import Report
from pttool.data_formats import json_lines
from pttool.errors import UsageError
from pttool.options import OutputOptions
from pttool.output import Format, emit_text
from pttool.tables import Paper, table

HOME, CLEAR_REST, CLEAR_LINE = "\x1b[H", "\x1b[J", "\x1b[K"


def watch(find: Callable[[], Report], every_s: float, options: OutputOptions) -> None:
    """Write what is found every so many seconds, until it is interrupted or nobody reads it.

    Raises UsageError for a format that has no beginning or end of its own.
    """
    destination = options.choose()
    if destination.path is not None or destination.format not in (Format.TABLE, Format.NDJSON):
        raise UsageError("--watch writes a terminal or NDJSON", "leave out the format and -o")
    drawn = destination.is_for_people and os.environ.get("TERM") != "dumb"
    from pttool.core.gpu.nvml import session

    with session():  # starting the driver each time would take longer than to ask it
        if drawn:
            emit_text(HOME + CLEAR_REST, None)
        while True:
            report = find()
            emit_text(_screen(report, every_s) if drawn else _lines(report), None)
            time.sleep(every_s)


def _screen(report: Report, every_s: float) -> str:
    paper = Paper.of_descriptor(1, sys.stdout.encoding)
    told = [f"every {every_s:g} s, {datetime.now():%H:%M:%S}", ""]
    text = "".join(table(report, True, paper))
    failed = [report.failure.message] if report.failure is not None else []
    said = [part for line in (*report.notes, *failed) for part in wrap(line, paper.width)]
    lines = _that_fit([*told, *text.splitlines(), *said], os.get_terminal_size(1).lines, paper)
    return HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST


def _that_fit(lines: Sequence[str], height: int, paper: Paper) -> Sequence[str]:
    """Return the first lines, and how many don't fit: what scrolls can't be drawn over again.

    The cursor needs the last line of a terminal, and one that doesn't know its height has 0.
    """
    room = max(height - 1, 1)
    if height == 0 or len(lines) <= room:
        return lines
    dots = "..." if paper.is_narrow else "\u2026"
    return [*lines[: room - 1], f"{dots} {len(lines) - room + 1} more lines"]


def _lines(report: Report) -> str:
    """Each line says when it was, since a reader may join the watch at any time."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    items = [{"time": now, **item} for item in report.items]
    timed = replace(report, fields=("time", *report.fields), items=items)
    return "".join(json_lines(timed, ascii_only=False))
