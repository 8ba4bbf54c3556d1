"""The frame indices of mmaction2 1.2.0, faults included: SampleFrames and UniformSample.

The rules are those of its mmaction/datasets/transforms/loading.py, float for float: Python's float
is numpy's float64, and both round halves to even.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pttool.errors import InputError


@dataclass(frozen=True, slots=True)
class Clips:
    """SampleFrames' own arguments; without `repeat_last`, what is out of bounds loops."""

    num_clips: int
    clip_len: int = 1
    frame_interval: int = 1
    twice_sample: bool = False
    repeat_last: bool = False


def test(frames: int, clips: Clips) -> tuple[int, ...]:
    """Return what SampleFrames(..., test_mode=True) takes of a video of `frames` frames.

    Raises InputError where it divides by zero.
    """
    if clips.clip_len > 1:
        return _frames_of([float(at) for at in _spread(frames, clips)], frames, clips)
    interval = frames / float(clips.num_clips)
    starts = [i * interval for i in range(clips.num_clips)]
    offsets = [start + interval / 2.0 for start in starts]
    return _frames_of(offsets + (starts if clips.twice_sample else []), frames, clips)


def train(frames: int, clips: Clips, state: np.random.RandomState) -> tuple[int, ...]:
    """Return what SampleFrames(...) draws from numpy's global state."""
    span = clips.clip_len * clips.frame_interval
    interval = (frames - span + 1) // clips.num_clips
    if interval > 0:
        drawn = state.randint(interval, size=clips.num_clips)
        offsets = [float(i * interval + at) for i, at in enumerate(drawn)]
    elif frames > max(clips.num_clips, span):
        offsets = [
            float(at) for at in np.sort(state.randint(frames - span + 1, size=clips.num_clips))
        ]
    elif interval == 0:
        ratio = (frames - span + 1.0) / clips.num_clips
        offsets = [float(round(i * ratio)) for i in range(clips.num_clips)]
    else:
        offsets = [0.0] * clips.num_clips
    return _frames_of(offsets, frames, clips)


def uniform(frames: int, clip_len: int) -> tuple[int, ...]:
    """Return what UniformSample(clip_len, test_mode=True) takes of a video of `frames` frames."""
    segment = float(frames - 1) / clip_len
    return tuple(round(segment * i) + int(segment / 2) for i in range(clip_len))


def _spread(frames: int, clips: Clips) -> Sequence[float]:
    """Return where clips of several frames start: from the first place to the last."""
    span = (clips.clip_len - 1) * clips.frame_interval + 1
    last = max(frames - span, 0)
    count = 2 * clips.num_clips if clips.twice_sample else clips.num_clips
    if count == 1:
        return [last // 2]
    if clips.num_clips == 1:
        raise InputError(
            "mmaction2 divides by zero for one clip of several frames sampled twice",
            "give -k 2 or more, or leave out --twice-sample",
        )
    between = last / float(clips.num_clips - 1)  # sampled twice, the later half is out of bounds
    return [round(i * between) for i in range(count)]


def _frames_of(offsets: Sequence[float], frames: int, clips: Clips) -> tuple[int, ...]:
    """Return the frames of the clips that start at `offsets`, as int32 cuts them."""
    indices: list[int] = []
    for offset in offsets:
        clip = [offset + j * clips.frame_interval for j in range(clips.clip_len)]
        if clips.repeat_last:
            last = max((at for at in clip if at < frames), default=0.0)
            indices += [int(at if at < frames else last) for at in clip]
        else:
            indices += [int(at % frames) for at in clip]
    return tuple(indices)
