"""The frame indices of tsn-pytorch, faults included, from 0: its own count from 1.

The rules are those of TSNDataSet in https://github.com/yjxiong/tsn-pytorch, dataset.py.
"""

from collections.abc import Sequence

import numpy as np

from pttool.errors import InputError


def test(frames: int, segments: int, length: int) -> tuple[int, ...]:
    """Return the frames of its test mode, `length` (new_length) from each segment.

    Raises InputError where it asks for a frame before the first.
    """
    tick = (frames - length + 1) / float(segments)
    return _frames_of([int(tick / 2.0 + tick * i) for i in range(segments)], frames, length)


def train(frames: int, segments: int, length: int, state: np.random.RandomState) -> tuple[int, ...]:
    """Return the frames that its training draws from numpy's global state.

    Raises InputError where it draws from nothing.
    """
    places = frames - length + 1
    duration = places // segments
    if duration > 0:
        drawn = state.randint(duration, size=segments)
        return _frames_of([i * duration + int(at) for i, at in enumerate(drawn)], frames, length)
    if frames <= segments:
        return _frames_of([0] * segments, frames, length)
    if places < 1:
        raise InputError(
            f"tsn-pytorch fails for {length} frames from each segment of {frames}",
            "take shorter clips, or leave out --compat",
        )
    return _frames_of(np.sort(state.randint(places, size=segments)).tolist(), frames, length)


def _frames_of(offsets: Sequence[int], frames: int, length: int) -> tuple[int, ...]:
    """Return the frames that follow each offset; the last frame of the video is repeated."""
    if min(offsets) < 0:
        raise InputError(
            f"tsn-pytorch asks for frame {min(offsets)} of {frames}",
            "take shorter clips, or leave out --compat",
        )
    return tuple(min(offset + j, frames - 1) for offset in offsets for j in range(length))
