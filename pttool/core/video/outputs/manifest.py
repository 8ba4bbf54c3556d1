"""What a manifest says of each video: which frames stand for it, or why none do."""

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from pttool.core.files import written
from pttool.core.video.sampling.naming import Source

FIELDS = (
    "file", "status", "n", "indices", "pts", "time_base", "seed", "output", "warnings", "reason",
)  # fmt: skip
Entry = dict[str, Any]


def sampled(
    source: Source,
    indices: Sequence[int],
    *,
    frames: int,
    seed: int,
    pts: Sequence[int | None] | None = None,
    time_base: Fraction | None = None,
    output: str | None = None,
    warnings: Sequence[str] = (),
) -> Entry:
    """Return the entry of a video of `frames` frames.

    `pts` are the timestamps of the sampled frames, in units of `time_base` seconds.
    """
    return dict.fromkeys(FIELDS) | {
        "file": source.file or None,
        "status": "ok",
        "n": frames,
        "indices": list(indices),
        "pts": None if pts is None else list(pts),
        "time_base": None if time_base is None else str(time_base),
        "seed": seed,
        "output": output,
        "warnings": list(warnings),
    }


def failed(source: Source, reason: str, seed: int) -> Entry:
    """Return the entry of a video that can't be sampled."""
    told = {"file": source.file, "status": "error", "seed": seed, "warnings": [], "reason": reason}
    return dict.fromkeys(FIELDS) | told


def write_manifest(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines sorted by file: the same bytes whatever order the videos were done in.

    Raises UnavailableError for what the system refuses.
    """
    lines = [
        json.dumps(entry) + "\n" for entry in sorted(entries, key=lambda one: one["file"] or "")
    ]
    with written(path) as stream:
        stream.writelines(line.encode("ascii") for line in lines)
