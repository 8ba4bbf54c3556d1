"""Clips nobody here wrote: every sampled picture is the one a sequential decode gives."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pttool.core.video.decode import open_video
from pttool.core.video.info import info
from tests.core.video import oracle
from tests.core.video.real_clips import CLIPS


@pytest.mark.parametrize("name", CLIPS)
def test_a_sampled_picture_is_that_of_a_sequential_decode(
    name: str, real_clip: Callable[[str], Path]
) -> None:
    path, frames = real_clip(name), CLIPS[name].frames
    middles = {(2 * i + 1) * frames // (2 * k) for k in (8, 25) for i in range(k)}
    ordinals = sorted(middles | set(random.Random(name).sample(range(frames), 10)))
    with open_video(path) as video:
        assert len(video.index) == frames
        found = {picture.ordinal: picture.rgb for picture in video.pictures(ordinals)}
    assert list(found) == ordinals
    count = 0
    for ordinal, wanted in enumerate(oracle.frames(path)):
        count += 1
        if ordinal in found:
            assert (found[ordinal] == oracle.upright(wanted)).all(), ordinal
    assert count == frames


@pytest.mark.parametrize("name", CLIPS)
def test_frames_are_counted(name: str, real_clip: Callable[[str], Path]) -> None:
    (row,) = info([real_clip(name)]).items
    assert row["frames"] == CLIPS[name].frames
