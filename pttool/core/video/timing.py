"""The clock of a video: frames a second, whether they are even, duration and start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from pttool.core.video.types import FrameIndex

# Intervals are even if they differ by no more than rounding to the clock's ticks makes them.
ROUNDING_TICKS = 2
ROUNDING_S = Fraction(1, 1000)
LARGEST_DENOMINATOR = 1_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Frames a second, exact; times in seconds. None is unknown."""

    fps: Fraction | None
    fps_source: Literal["timestamps", "header", "assumed"] | None
    is_vfr: bool | None
    duration_s: float | None
    start_s: float | None


def timing(
    index: FrameIndex, last_duration: int | None, header: Sequence[Fraction], *, has_clock: bool
) -> Timing:
    """Return the clock that the timestamps tell, else the first rate of the header.

    `last_duration` is that of the last frame in units of the time base; of the rates in the
    header, the one that agrees with the timestamps is the exact form of theirs. Without a clock in
    the container, the header's is what FFmpeg assumes.
    """
    times = _times(index)
    if len(times) < 2:
        return _from_header(index, last_duration, header, has_clock=has_clock)
    spans = [later - earlier for earlier, later in pairwise(times)]
    mean = (times[-1] - times[0]) / len(spans)
    allowed = max(ROUNDING_TICKS * index.time_base, ROUNDING_S)
    is_vfr = max(spans) - min(spans) > allowed
    last = (last_duration or 0) * index.time_base or mean
    duration = times[-1] - times[0] + last
    if is_vfr:
        fps = (len(times) / duration).limit_denominator(LARGEST_DENOMINATOR)
    else:
        fps = _nominal(1 / mean, header, allowed / (times[-1] - times[0]))
    return Timing(fps, "timestamps", is_vfr, float(duration), float(times[0]))


def _times(index: FrameIndex) -> list[Fraction]:
    """Return the times of the frames in seconds; none where they are no clock."""
    known = [pts * index.time_base for pts in index.pts if pts is not None]
    is_clock = len(known) == len(index) and known == sorted(known) and known[:1] != known[-1:]
    return known if is_clock else []


def _nominal(measured: Fraction, header: Sequence[Fraction], tolerance: Fraction) -> Fraction:
    """Return the rate of the header that is the measured one but for rounding, else that itself."""
    agreeing = (rate for rate in header if abs(rate / measured - 1) <= tolerance)
    return next(agreeing, measured.limit_denominator(LARGEST_DENOMINATOR))


def _from_header(
    index: FrameIndex, last_duration: int | None, header: Sequence[Fraction], *, has_clock: bool
) -> Timing:
    duration = len(index) / header[0] if header else None
    if len(index) == 1 and last_duration:
        duration = last_duration * index.time_base
    first = index.pts[0] if has_clock else None
    told = header_timing(header, None if duration is None else float(duration), has_clock=has_clock)
    return replace(told, start_s=None if first is None else float(first * index.time_base))


def header_timing(
    header: Sequence[Fraction], duration_s: float | None, *, has_clock: bool
) -> Timing:
    """Return the clock of a video of which only the header is known."""
    fps = next(iter(header), None)
    if fps is None:
        return Timing(None, None, None, duration_s, None)
    return Timing(fps, "header" if has_clock else "assumed", None, duration_s, None)


def longest_gop(index: FrameIndex) -> int | None:
    """Return the most frames from one keyframe up to the next or the end; None without any."""
    if not index.keyframes:
        return None
    bounds = [*index.keyframes, len(index)]
    return max(later - earlier for earlier, later in pairwise(bounds))
