"""Tell what videos are: codec, size, rate, and how many frames there really are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pttool.core.batch import each
from pttool.core.report import Column, Report
from pttool.core.video.facts import FIELDS, facts_of
from pttool.errors import UsageError

COLUMNS = (
    Column("file", "File"),
    Column("codec", "Codec"),
    Column("width", "Width", "number"),
    Column("height", "Height", "number"),
    Column("fps", "FPS", "number"),
    Column("frames", "Frames", "count"),
    Column("duration_s", "Duration", "seconds"),
    Column("frames_header", "Header says", "count", optional=True),
    Column("rotation", "Rotation", "number", optional=True),
    Column("is_vfr", "VFR", "flag", optional=True),
    Column("gop_max", "Longest GOP", "count", optional=True),
    Column("size_bytes", "Size", "bytes", optional=True),
    Column("frames_source", "Counted by", optional=True),
    Column("pix_fmt", "Pixels", optional=True),
)
FOOTER = (
    Column("files", "Files", "count"),
    Column("frames", "Frames", "count"),
    Column("duration_s", "Duration", "seconds"),
    Column("size_bytes", "Size", "bytes"),
)
TOTALS = ("frames", "duration_s", "size_bytes")


def info(paths: Sequence[Path], *, fast: bool = False, decode: bool = False) -> Report:
    """Return a row for each video: a file, a folder of images, or a pattern of their names.

    Frames are counted by their packets, or by decoding all of them where those can't be trusted;
    `decode` always decodes, `fast` reads the header alone. With several paths, those that can't be
    read are noted, and a failure is raised in the end. Raises InputError for one that is no video,
    UnavailableError where there is no decoder, UsageError for both `decode` and `fast`.
    """
    if fast and decode:
        raise UsageError("--fast with --decode", "leave out one of them")
    done = each(paths, lambda path: facts_of(path, fast=fast, decode=decode))
    rows = [row for _, row in done.results]
    warnings = [f"{row['file']}: {warning}" for row in rows for warning in row["warnings"]]
    footer = FOOTER if len(rows) > 1 else ()
    return Report(
        FIELDS, COLUMNS, rows, _totals(rows), footer, (*warnings, *done.notes), done.failure
    )


def _totals(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums over all files; one with an unknown part is unknown."""
    totals: dict[str, Any] = {"files": len(rows)}
    for key in TOTALS:
        values = [row[key] for row in rows]
        totals[key] = None if None in values else sum(values)
    return totals
