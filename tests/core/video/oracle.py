"""What a full sequential decode by PyAV with one thread shows: the truth about a video."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.stream import Disposition
from av.video.stream import VideoStream

from tests.core.video.barcode import Rgb, read


@dataclass(frozen=True)
class Shown:
    """A picture: the number that stands in it, None where it can't be read, and its digest."""

    number: int | None
    digest: str


def shown(rgb: Rgb) -> Shown:
    """Return what a picture shows."""
    content = f"{rgb.shape}".encode() + np.ascontiguousarray(rgb).tobytes()
    return Shown(read(rgb), hashlib.blake2b(content, digest_size=8).hexdigest())


def decode(path: Path) -> list[Shown]:
    """Decode a file, or all images of a folder by the numbers in their names."""
    if path.is_dir():
        images = sorted(path.iterdir(), key=lambda image: int(re.sub(r"\D", "", image.stem)))
        return [shown(upright(frame)) for image in images for frame in frames(image)]
    return [shown(upright(frame)) for frame in frames(path)]


def frames(path: Path) -> Iterator[av.VideoFrame]:
    """Decode the video of a file; a packet that can't be decoded is passed over, as ffmpeg does."""
    with av.open(path) as container:
        stream = _film(container.streams.video)
        stream.codec_context.thread_count = 1
        for packet in container.demux(stream):
            try:
                yield from packet.decode()
            except av.FFmpegError:
                continue


def upright(frame: av.VideoFrame) -> Rgb:
    """Return the picture of a frame, turned as it is to be shown."""
    return np.rot90(frame.to_ndarray(format="rgb24"), frame.rotation // 90)


def _film(streams: tuple[VideoStream, ...]) -> VideoStream:
    return next(stream for stream in streams if not stream.disposition & Disposition.attached_pic)
