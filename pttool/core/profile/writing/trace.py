"""The windows of a run as one trace that https://ui.perfetto.dev and chrome://tracing open."""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pttool.core.profile.trace_events import trace_events

HEAD = '{"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [\n'


def write_trace(windows: Sequence[Path], stream: BinaryIO, *, compressed: bool) -> None:
    """Write the traces that torch.profiler exported, oldest first, as one.

    Their times count from one base, which is the process's; their ids begin anew in each, so that
    they get the window's number. Raises OSError for a trace that can't be read.
    """
    if not compressed:
        stream.writelines(_parts(windows))
        return
    # Without a name and a time of its own, equal traces are equal files.
    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.writelines(_parts(windows))


def _parts(windows: Iterable[Path]) -> Iterator[bytes]:
    separator = HEAD
    for number, window in enumerate(windows):
        for event in trace_events(window):
            text = json.dumps(_numbered(event, number), separators=(",", ":"))
            yield f"{separator}{text}".encode()
            separator = ",\n"
    yield f"{'' if separator != HEAD else HEAD}\n]}}\n".encode()


def _numbered(event: dict[str, Any], window: int) -> dict[str, Any]:
    return event | {"id": f"{window}.{event['id']}"} if "id" in event else event
