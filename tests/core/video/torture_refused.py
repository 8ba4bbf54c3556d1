"""Torture: what is no video, with words that its refusal must have."""

from collections.abc import Callable
from pathlib import Path

import av

from tests.core.video.barcode import draw
from tests.core.video.encoding import copy, encoded
from tests.core.video.torture_codecs import H264
from tests.core.video.torture_containers import COVER, together
from tests.core.video.torture_timing import FRAME, later


def _truncated(path: Path) -> None:
    """Write an mp4 as a download leaves it that was ended before its moov."""
    whole = encoded(H264, "mp4")
    path.write_bytes(whole[: whole.index(b"moov") // 2])


def _picture(path: Path) -> None:
    av.VideoFrame.from_ndarray(draw(0, 128, 96), format="rgb24").save(path)


def _before_its_beginning(path: Path) -> None:
    """Write a film whose edit list begins after its last frame."""
    copy(encoded(H264, "mp4"), path, later(-60 * FRAME))


REFUSED: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "empty.mp4": (lambda path: path.write_bytes(b""), ("empty",)),
    "truncated.mp4": (_truncated, ("moov", "truncated")),
    "text.mp4": (lambda path: path.write_text("a film\n" * 50), ("not a video", "text")),
    "noise.mp4": (lambda path: path.write_bytes(bytes(range(256)) * 20), ("not a video",)),
    "zeros.mkv": (lambda path: path.write_bytes(bytes(5000)), ("not a video", "zeros")),
    "audio.mp4": (lambda path: together(path, (), sound=True), ("audio only",)),
    "audio_cover.mp4": (lambda path: together(path, (COVER,), sound=True), ("audio only",)),
    "picture.jpg": (_picture, ("image",)),
    "nothing_shown.mp4": (_before_its_beginning, ("frames",)),
    "no_images": (lambda path: path.mkdir(), ("image",)),
}
