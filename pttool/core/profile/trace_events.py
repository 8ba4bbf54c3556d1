"""Read a Chrome trace that torch.profiler exported, one event at a time."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK_CHARACTERS = 1 << 20
_EVENTS_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN_EVENTS = " \t\r\n,"


def trace_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace in the order of the file.

    Times are microseconds: `ts`, a start, and `dur`. A block of the file is held at a time. A trace
    that was cut short gives the events that are whole. Raises OSError for a file that can't be
    read.
    """
    decoder = json.JSONDecoder()
    text, begin = "", None
    with path.open(encoding="utf-8", errors="replace") as stream:
        while begin is None:
            more = stream.read(BLOCK_CHARACTERS)
            if not more:
                return
            text += more
            begin = _EVENTS_BEGIN.search(text)
        position = begin.end()
        while True:
            position = _next_event(text, position)
            if text.startswith("]", position):
                return
            try:
                event, position = decoder.raw_decode(text, position)
            except json.JSONDecodeError:  # the block ends inside the event
                more = stream.read(BLOCK_CHARACTERS)
                if not more:
                    return
                text, position = text[position:] + more, 0
                continue
            yield event


def _next_event(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BETWEEN_EVENTS:
        position += 1
    return position
