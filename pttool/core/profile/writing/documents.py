"""The files that a profile is written to, besides JSON and CSV."""

from pathlib import Path

from pttool.core.files import written
from pttool.core.profile.types import Profile
from pttool.core.profile.writing.flame import flame_svg, folded
from pttool.core.profile.writing.page import page
from pttool.core.profile.writing.trace import write_trace


def write_documents(
    profile: Profile, *, html: Path | None, trace: Path | None, flame: Path | None, sort: str
) -> None:
    """Write those that are asked for, each complete or not at all.

    Raises UnavailableError for what the system refuses, as no room.
    """
    if html is not None:
        _write_text(page(profile, sort=sort), html)
    if flame is not None:
        draw = folded if flame.suffix.lower() == ".folded" else flame_svg
        _write_text(draw(profile.stacks), flame)
    if trace is not None:
        with written(trace) as stream:
            write_trace(profile.ops.traces, stream, compressed=trace.suffix.lower() == ".gz")


def _write_text(text: str, path: Path) -> None:
    with written(path) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
