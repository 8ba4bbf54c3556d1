"""Make a contact sheet of a video, to look at."""

from collections.abc import Sequence
from pathlib import Path

from pttool.core.files import written
from pttool.core.report import Column, Report
from pttool.core.video.opencv import load_cv2
from pttool.core.video.outputs.contact_sheet import MOST_TILES, Tile, draw
from pttool.core.video.outputs.pixels import encoded
from pttool.core.video.sampling.naming import sources
from pttool.core.video.sampling.one_video import Task, sample
from pttool.core.video.tsn import Sampling
from pttool.errors import UsageError

FIELDS = ("file", "frame", "pts", "time_s")
COLUMNS = (Column("frame", "Frame", "count"), Column("time_s", "Time", "seconds"))
FOOTER = (Column("frames", "Frames of the video", "count"), Column("output", "Written to"))


def sheet(
    path: Path, out: Path, *, segments: int = 16, columns: int | None = None, rotate: bool = True
) -> Report:
    """Draw the middle frames of `segments` equal parts of a video on one picture, and write it.

    `out` ends in .jpg, .jpeg or .png; `columns` is by default as many as rows. Returns a row for
    each frame drawn. Raises InputError for what is no video and for a sheet that is too large for
    JPEG, UsageError for too many frames, UnavailableError where cv2 is broken or the picture can't
    be written.
    """
    if segments > MOST_TILES:
        raise UsageError(f"a sheet shows {MOST_TILES} frames, not {segments}", "take fewer")
    load_cv2()
    (source,) = sources([path])
    outcome = sample(Task(source, Sampling(segments), rotate=rotate, has_tiles=True))
    if outcome.failure is not None:
        raise outcome.failure
    tiles = list({tile.frame: tile for tile in outcome.tiles}.values())
    suffix = ".png" if out.suffix.lower() == ".png" else ".jpg"
    content = encoded(draw([(source.file, tiles)], columns), suffix)
    with written(out) as stream:
        stream.write(content)
    return Report(
        fields=FIELDS,
        columns=COLUMNS,
        items=_rows(source.file, tiles),
        summary={"frames": outcome.entry["n"], "output": str(out)},
        footer=FOOTER,
        notes=tuple(f"{source.file}: {said}" for said in outcome.entry["warnings"]),
    )


def _rows(file: str, tiles: Sequence[Tile]) -> list[dict[str, object]]:
    return [
        {"file": file, "frame": tile.frame, "pts": tile.pts, "time_s": tile.time_s}
        for tile in tiles
    ]
