"""Encode numbered films with PyAV, and copy their packets, for the torture set."""

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import av
import numpy as np
from av.container import OutputContainer
from av.video.stream import VideoStream

from tests.core.video.barcode import draw

FRAMES = 40
X264: Mapping[str, str] = {"preset": "veryfast", "crf": "23", "g": "12", "bf": "3"}
Packet: TypeAlias = "av.Packet[VideoStream]"
# Alters a packet that is copied; the packet is lost where it returns False.
Change = Callable[[Packet], bool]


@dataclass(frozen=True)
class Film:
    """What is encoded: pictures of `numbers`, shown at `ticks` of `time_base` seconds.

    `size` is width and height as displayed; `turned` is the turn, clockwise in degrees, that a
    player makes to show the film upright.
    """

    codec: str = "libx264"
    options: Mapping[str, str] = field(default_factory=lambda: X264)
    numbers: Sequence[int] = range(FRAMES)
    size: tuple[int, int] = (128, 96)
    pix_fmt: str = "yuv420p"
    rate: Fraction = Fraction(25)
    ticks: Sequence[int] | None = None
    time_base: Fraction | None = None
    turned: int = 0
    sample_aspect_ratio: Fraction | None = None


def encode(path: Path, film: Film, *, form: str | None = None, **muxer: str) -> None:
    """Write a film; `form` is the container's format, by default that of the name's suffix."""
    with av.open(path, "w", format=form, container_options=muxer) as container:
        stream = add_film(container, film)
        for packet in packets(stream, film):
            container.mux_one(packet)


def add_film(container: OutputContainer, film: Film) -> VideoStream:
    """Add the stream of a film to a container."""
    stream = container.add_stream(film.codec, film.rate, dict(film.options))
    assert isinstance(stream, VideoStream)
    width, height = film.size
    stream.width, stream.height = (height, width) if film.turned % 180 else (width, height)
    stream.pix_fmt = film.pix_fmt
    stream.codec_context.thread_count = 1
    stream.codec_context.time_base = film.time_base or 1 / film.rate
    if film.sample_aspect_ratio is not None:
        stream.codec_context.sample_aspect_ratio = film.sample_aspect_ratio
    if film.turned:
        stream.set_display_rotation(-film.turned)  # counterclockwise
    return stream


def packets(stream: VideoStream, film: Film) -> Iterator[Packet]:
    """Encode the pictures of a film."""
    ticks = range(len(film.numbers)) if film.ticks is None else film.ticks
    for number, pts in zip(film.numbers, ticks, strict=True):
        lying = np.rot90(draw(number, *film.size), film.turned // 90)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(lying), format="rgb24")
        frame = frame.reformat(format=film.pix_fmt)
        frame.pts, frame.time_base = pts, stream.codec_context.time_base
        yield from stream.encode(frame)
    yield from stream.encode(None)


def encoded(film: Film, form: str, **muxer: str) -> bytes:
    """Return a film as the bytes of a file."""
    with tempfile.NamedTemporaryFile() as made:  # a muxer that moves the moov reads by name
        encode(Path(made.name), film, form=form, **muxer)
        return Path(made.name).read_bytes()


def copy(source: bytes, path: Path, change: Change = lambda packet: True, **muxer: str) -> None:
    """Copy the video of a file, packet by packet."""
    with (
        av.open(io.BytesIO(source), "r") as read,
        av.open(path, "w", container_options=muxer) as made,
    ):
        stream = made.add_stream_from_template(read.streams.video[0])
        for packet in read.demux(read.streams.video[0]):
            if packet.size and change(packet):
                packet.stream = stream
                made.mux_one(packet)
