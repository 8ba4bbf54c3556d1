"""What there is to tell of one video."""

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

from av.video.format import VideoFormat
from av.video.frame import VideoFrame

from pttool.core.video.decode import VideoFile
from pttool.core.video.index import every_frame
from pttool.core.video.opening import Input, opened
from pttool.core.video.sequences import ImageSequence, images_of
from pttool.core.video.timing import Timing, header_timing, longest_gop, timing
from pttool.core.video.types import FrameIndex
from pttool.core.video.upright import Turn, turn_of

FIELDS = (
    "file", "codec", "width", "height", "coded_width", "coded_height", "rotation",
    "sample_aspect_ratio", "fps", "fps_fraction", "fps_source", "is_vfr", "frames", "frames_header",
    "frames_source", "duration_s", "start_s", "keyframes", "gop_max", "pix_fmt", "bit_depth",
    "bit_rate", "has_audio", "size_bytes", "warnings",
)  # fmt: skip
MICROSECONDS = 1_000_000  # the unit of a container's duration


def facts_of(path: Path, *, fast: bool = False, decode: bool = False) -> dict[str, Any]:
    """Return the FIELDS of a video.

    `coded_width` and `coded_height` are those of the stored pictures, in pixels; `width` and
    `height` those shown: upright, and as wide as the sample aspect ratio makes them. `rotation` is
    in degrees counterclockwise. `bit_rate` is that of the pictures alone, in bits a second.
    """
    images = images_of(path)
    if images is not None:
        facts = _of_images(ImageSequence(path, images), decode=decode)
    else:
        with opened(path) as source:
            facts = _of_header(source) if fast else _of_file(VideoFile(source), decode=decode)
    return {key: str(path) if key == "file" else facts.get(key) for key in FIELDS}


def _of_header(source: Input) -> dict[str, Any]:
    stream = source.stream
    first = next((frame for frame in every_frame(source) if frame is not None), None)
    duration = None
    if stream.duration is not None and stream.time_base is not None:
        duration = float(stream.duration * stream.time_base)
    elif source.container.duration is not None:
        duration = source.container.duration / MICROSECONDS
    rates = _header_rates(source)
    clock = header_timing(rates, duration, has_clock=source.has_clock)
    return {
        **_of_stream(source, first),
        **_of_clock(clock),
        "frames": stream.frames or None,
        "frames_source": "assumed" if stream.frames else None,
        "bit_rate": stream.bit_rate or source.container.bit_rate or None,
        "warnings": _warnings_of(first, clock),
    }


def _of_file(video: VideoFile, *, decode: bool) -> dict[str, Any]:
    if decode:
        video.decoded_index()
    source, index, packets = video.source, video.index, video.packets
    first = packets.probe.first if video.decoded is None else video.decoded.first
    clock = timing(index, packets.last_duration, _header_rates(source), has_clock=source.has_clock)
    duration = clock.duration_s
    return {
        **_of_stream(source, first),
        **_of_clock(clock),
        **_of_index(index),
        "bit_rate": round(8 * packets.payload_bytes / duration) if duration else None,
        "warnings": [*_warnings_of_frames(video), *_warnings_of(first, clock)],
    }


def _of_images(sequence: ImageSequence, *, decode: bool) -> dict[str, Any]:
    if decode:
        sequence.decoded_index()
    codec, first = sequence.first()
    clock = timing(sequence.index, None, (), has_clock=True)
    size = sum(image.stat().st_size for image in sequence.images)
    return {
        "codec": codec,
        **_of_picture(first, None),
        **_of_clock(Timing(clock.fps, "assumed", False, clock.duration_s, None)),
        **_of_index(sequence.index),
        "bit_rate": round(8 * size / clock.duration_s) if clock.duration_s else None,
        "has_audio": False,
        "size_bytes": size,
        "warnings": [] if sequence.shortfall is None else [sequence.shortfall],
    }


def _of_stream(source: Input, first: VideoFrame | None) -> dict[str, Any]:
    stream, context = source.stream, source.stream.codec_context
    facts = {
        "codec": stream.codec.canonical_name,
        "coded_width": context.width or None,
        "coded_height": context.height or None,
        "pix_fmt": context.pix_fmt,
        "frames_header": stream.frames or None,
        "has_audio": bool(source.container.streams.audio),
        "size_bytes": os.stat(source.path).st_size,
    }
    return facts if first is None else facts | _of_picture(first, stream.sample_aspect_ratio)


def _of_picture(frame: VideoFrame, sample_aspect_ratio: Fraction | None) -> dict[str, Any]:
    turn = turn_of(frame)
    shown = round(frame.width * (sample_aspect_ratio or 1)), frame.height
    return {
        "width": shown[1] if turn.is_transposed else shown[0],
        "height": shown[0] if turn.is_transposed else shown[1],
        "coded_width": frame.width,
        "coded_height": frame.height,
        "rotation": turn.angle,
        "sample_aspect_ratio": _quotient(sample_aspect_ratio, ":"),
        "pix_fmt": frame.format.name,
        "bit_depth": _bit_depth(frame.format),
    }


def _quotient(value: Fraction | None, sign: str) -> str | None:
    return f"{value.numerator}{sign}{value.denominator}" if value else None


def _bit_depth(form: VideoFormat) -> int | None:
    return max((component.bits for component in form.components), default=None)


def _of_index(index: FrameIndex) -> dict[str, Any]:
    return {
        "frames": len(index),
        "frames_source": index.source,
        "keyframes": len(index.keyframes),
        "gop_max": longest_gop(index),
    }


def _of_clock(clock: Timing) -> dict[str, Any]:
    fps = clock.fps
    return {
        "fps": None if fps is None else float(fps),
        "fps_fraction": _quotient(fps, "/"),
        "fps_source": clock.fps_source,
        "is_vfr": clock.is_vfr,
        "duration_s": clock.duration_s,
        "start_s": clock.start_s,
    }


def _header_rates(source: Input) -> list[Fraction]:
    """Return the rates that the header tells: the mean one, and that of which all are multiples."""
    rates = (source.stream.guessed_rate, source.stream.average_rate, source.stream.base_rate)
    return [rate for rate in rates if rate]


def _warnings_of_frames(video: VideoFile) -> list[str]:
    header, frames = video.source.stream.frames, len(video.index)
    warnings = [said for said in (video.shortfall, video.damage) if said is not None]
    if header and header != frames and video.shortfall is None:
        warnings.append(f"the header counts {header} frames, of which {frames} are shown")
    return warnings


def _warnings_of(first: VideoFrame | None, clock: Timing) -> list[str]:
    warnings = []
    if clock.fps_source == "assumed" and clock.fps is not None:
        warnings.append(f"no timestamps: {float(clock.fps):.6g} frames a second is assumed")
    turn = Turn() if first is None else turn_of(first)
    if turn.angle % 90:
        warnings.append(f"turned by {turn.angle} degrees, which pictures are not")
    return warnings
