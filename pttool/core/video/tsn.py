"""Which frames stand for a video: indices, in integers, as temporal segment networks take them.

A video of n frames has m = n - span + 1 places for a clip of `span` frames (n places for a single
frame), which K segments share. The source of the rules is Wang et al., Temporal Segment Networks
(ECCV 2016); the float forms in use round some of the middles down.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from zlib import crc32

import numpy as np

from pttool.core.video.compat import mmaction2, tsn_pytorch
from pttool.errors import InputError, UsageError

Mode = Literal["test", "train", "uniform"]
OutOfBounds = Literal["clamp", "loop", "error"]
Compat = Literal["mmaction2", "tsn-pytorch"]
MOST_TAKEN = 1_000_000  # a mistyped number must not fill the memory
MOST_FRAMES = 2**31 - 1  # mmaction2's indices are int32


@dataclass(frozen=True, slots=True)
class Sampling:
    """How frames are chosen: `clip_len` frames, `frame_interval` apart, from each segment.

    `test` takes the middle of each segment, `train` draws in it, `uniform` is mmaction2's
    UniformSample. `out_of_bounds` is what a clip longer than the video does; None is clamp, and
    with `compat` what that library does by itself. `twice` adds the segment starts to the middles.
    Raises UsageError for what doesn't go together.
    """

    segments: int = 8
    mode: Mode = "test"
    clip_len: int = 1
    frame_interval: int = 1
    out_of_bounds: OutOfBounds | None = None
    twice: bool = False
    compat: Compat | None = None
    seed: int = 0

    @property
    def count(self) -> int:
        """How many frames are taken of a video."""
        return self.segments * self.clip_len * (2 if self.twice else 1)

    def __post_init__(self) -> None:
        if self.count > MOST_TAKEN:
            raise UsageError(f"{self.count} frames of each video", f"take at most {MOST_TAKEN}")
        if self.frame_interval > MOST_FRAMES:
            raise UsageError(f"--frame-interval {self.frame_interval}", f"at most {MOST_FRAMES}")
        if self.twice and self.mode != "test":
            raise UsageError(f"--twice-sample with --mode {self.mode}", "it goes with --mode test")
        if self.mode == "uniform":
            self._refuse("--mode uniform", "clip_len", "frame_interval", "out_of_bounds")
            if self.compat == "tsn-pytorch":
                raise UsageError("tsn-pytorch has no uniform mode", "it is mmaction2's")
        if self.compat == "tsn-pytorch":
            self._refuse("--compat tsn-pytorch", "frame_interval", "out_of_bounds", "twice")
        if self.compat == "mmaction2" and self.out_of_bounds == "error":
            raise UsageError("mmaction2 has no --oob error", "give loop, as it does, or clamp")

    def _refuse(self, asked: str, *names: str) -> None:
        """Raise UsageError if any of the fields has another value than its default."""
        for name in names:
            if getattr(self, name) != Sampling.__dataclass_fields__[name].default:
                raise UsageError(f"{asked} with {OPTIONS[name]}", f"leave out {OPTIONS[name]}")


OPTIONS = {
    "clip_len": "--clip-len",
    "frame_interval": "--frame-interval",
    "out_of_bounds": "--oob",
    "twice": "--twice-sample",
}


def frame_indices(frames: int, sampling: Sampling, name: str = "") -> tuple[int, ...]:
    """Return the indices, from 0, of the frames that stand for a video of `frames` frames.

    In the order of the segments, and in each the frames of its clip. `name` is the video's relative
    posix path: what is drawn depends on it and the seed, and on nothing else. Raises InputError,
    which doesn't name the video, for no frames or more than MOST_FRAMES, for a clip that is too
    long where that is an error, and where the library that is followed fails itself.
    """
    if frames < 1:
        raise InputError("there are no frames", "a video has at least one")
    if frames > MOST_FRAMES:
        raise InputError(f"{frames} are too many frames", f"at most {MOST_FRAMES} can be numbered")
    if sampling.mode == "uniform":
        return mmaction2.uniform(frames, sampling.segments)
    if sampling.compat == "mmaction2":
        return _as_mmaction2(frames, sampling, name)
    if sampling.compat == "tsn-pytorch":
        return _as_tsn_pytorch(frames, sampling, name)
    span = (sampling.clip_len - 1) * sampling.frame_interval + 1
    places = max(frames - span + 1, 1)
    if sampling.mode == "train":
        starts = _drawn(segment_ranges(places, sampling.segments), sampling.seed, name)
    else:
        starts = segment_middles(places, sampling.segments)
        if sampling.twice:
            starts += segment_starts(places, sampling.segments)
    if span > frames and sampling.out_of_bounds == "error":
        raise InputError(
            f"a clip of {span} frames is longer than the video's {frames}",
            "--oob clamp repeats the last frame, --oob loop starts again",
        )
    steps = range(0, span, sampling.frame_interval)
    wanted = (start + step for start in starts for step in steps)
    if sampling.out_of_bounds == "loop":
        return tuple(index % frames for index in wanted)
    return tuple(min(index, frames - 1) for index in wanted)


def segment_middles(places: int, segments: int) -> list[int]:
    """Return the middle of each segment: floor((2i + 1) n / 2K)."""
    return [(2 * i + 1) * places // (2 * segments) for i in range(segments)]


def segment_starts(places: int, segments: int) -> list[int]:
    """Return the first place of each segment: floor(i n / K)."""
    return [i * places // segments for i in range(segments)]


def segment_ranges(places: int, segments: int) -> list[tuple[int, int]]:
    """Return the first and last place that each segment draws from.

    Together they hold every place; a segment without one of its own has that of its start.
    """
    starts = [*segment_starts(places, segments), places]
    return [(low, max(low, high - 1)) for low, high in pairwise(starts)]


def _drawn(ranges: list[tuple[int, int]], seed: int, name: str) -> list[int]:
    """Draw a place from each range, whatever was drawn for other videos."""
    uniform = np.random.default_rng([seed, _checksum(name)]).random(len(ranges))
    return [low + int(u * (high - low + 1)) for u, (low, high) in zip(uniform, ranges, strict=True)]


def _as_mmaction2(frames: int, sampling: Sampling, name: str) -> tuple[int, ...]:
    clips = mmaction2.Clips(
        sampling.segments,
        sampling.clip_len,
        sampling.frame_interval,
        sampling.twice,
        repeat_last=sampling.out_of_bounds == "clamp",
    )
    if sampling.mode == "train":
        return mmaction2.train(frames, clips, _global_state(sampling.seed, name))
    return mmaction2.test(frames, clips)


def _as_tsn_pytorch(frames: int, sampling: Sampling, name: str) -> tuple[int, ...]:
    if sampling.mode == "train":
        state = _global_state(sampling.seed, name)
        return tsn_pytorch.train(frames, sampling.segments, sampling.clip_len, state)
    return tsn_pytorch.test(frames, sampling.segments, sampling.clip_len)


def _global_state(seed: int, name: str) -> np.random.RandomState:
    """Return numpy's global state, which both libraries draw from, as after np.random.seed."""
    return np.random.RandomState([seed, _checksum(name)])


def _checksum(name: str) -> int:
    return crc32(name.encode("utf-8", "surrogateescape"))
