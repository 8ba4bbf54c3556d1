"""What an extraction comes to: the counts while it goes on, and the report in the end."""

import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pttool.core.features.merge import COLUMNS, FIELDS, described, items, with_more
from pttool.core.features.parts import Record, Stored
from pttool.core.features.preparing import Prepared
from pttool.core.features.ranks import Shard
from pttool.core.report import Column, Report
from pttool.errors import InputError

# Told how many pictures are done, how many there are, and how many of those done failed.
Progress = Callable[[int, int, int], object]
FOOTER = (
    Column("images", "Images", "count"),
    Column("failed", "Left out", "count"),
    Column("parts", "Parts", "count"),
    Column("parts_reused", "Made before", "count"),
    Column("seconds", "Time", "seconds"),
    Column("images_per_s", "Images/s", "number"),
    Column("forward_fraction", "In the model", "ratio"),
    Column("peak_rss_bytes", "Memory", "bytes"),
)


class Tally:
    """Counts the parts of one shard, of `images` pictures, as they are found or made."""

    def __init__(self, out: Path, images: int, progress: Progress) -> None:
        self._out = out
        self._progress = progress
        self._start = time.monotonic()
        self.images = images
        self.done = self.made = self.failed = self.parts = self.reused = 0
        self.forward_s = self.seconds = 0.0
        self.layers: Mapping[str, Stored] = {}

    def found(self, record: Record) -> None:
        """Count a part that was there."""
        self._count(record)
        self.reused += 1

    def begin(self) -> None:
        """Take the time from now on."""
        self._start = time.monotonic()
        self._progress(self.done, self.images, self.failed)

    def add(self, record: Record, forward_s: float) -> None:
        """Count a part that was made, and the seconds that the model took for it."""
        before = self.done
        self._count(record)
        self.made += self.done - before
        self.forward_s += forward_s
        self.seconds = time.monotonic() - self._start
        self._progress(self.done, self.images, self.failed)

    def _count(self, record: Record) -> None:
        self.layers = with_more(self._out, self.layers, record)
        self.done += len(record.ids) + len(record.failures)
        self.failed += len(record.failures)
        self.parts += 1


def report(
    prepared: Prepared,
    tally: Tally,
    processes: int,
    shard: Shard,
    paths: Mapping[str, str],
    notes: tuple[str, ...],
) -> Report:
    """Return what a shard has done: an item for each layer, whose file or folder is in `paths`."""
    summary = {
        "model": prepared.loaded.name,
        "weights": prepared.loaded.description["weights"],
        "layers": {layer: described(stored) for layer, stored in tally.layers.items()},
        "images": tally.images,
        "failed": tally.failed,
        "parts": tally.parts,
        "parts_reused": tally.reused,
        "seconds": tally.seconds,
        "images_per_s": tally.made / tally.seconds if tally.made else None,
        "forward_fraction": tally.forward_s / tally.seconds / processes if tally.made else None,
        "peak_rss_bytes": _peak(),
        "device": prepared.device,
        "processes": processes,
        "threads": prepared.request.running.threads,
        "shard": shard.number,
        "shards": shard.count,
    }
    return Report(FIELDS, COLUMNS, items(tally.layers, paths), summary, FOOTER, notes)


def left_out(failed: int, images: int, where: str) -> InputError | None:
    """Return the failure that pictures without a row are, None if there are none."""
    if not failed:
        return None
    if failed == images:
        return InputError(f"none of the {images} pictures can be read", f"{where} says why")
    return InputError(f"{failed} of {images} pictures are left out", f"{where} says why")


def _peak() -> int:
    """Return the most memory that one process had, of this one and those that it started."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(kind).ru_maxrss for kind in kinds)
    return peak if sys.platform == "darwin" else peak * 1024
