"""Which frames are taken: tables, the definition in fractions, the libraries' own floats."""

import math
from fractions import Fraction
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pttool.core.video.tsn import Compat, Mode, Sampling, frame_indices, segment_ranges
from pttool.errors import InputError, UsageError

COUNTS = st.integers(1, 3000)
SEGMENTS = st.integers(1, 64)
Indices = NDArray[Any]

TEST_TABLE = [
    (1, 8, "0 0 0 0 0 0 0 0"),
    (3, 8, "0 0 0 1 1 2 2 2"),
    (5, 8, "0 0 1 2 2 3 4 4"),
    (6, 7, "0 1 2 3 3 4 5"),
    (9, 8, "0 1 2 3 5 6 7 8"),
    (10, 3, "1 5 8"),
    (23, 8, "1 4 7 10 12 15 18 21"),
    (100, 8, "6 18 31 43 56 68 81 93"),
    (176, 8, "11 33 55 77 99 121 143 165"),
    (300, 8, "18 56 93 131 168 206 243 281"),
]
TRAIN_TABLE = [
    (1, 8, "0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0"),
    (3, 8, "0-0 0-0 0-0 1-1 1-1 1-1 2-2 2-2"),
    (5, 8, "0-0 0-0 1-1 1-1 2-2 3-3 3-3 4-4"),
    (9, 8, "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-8"),
    (10, 3, "0-2 3-5 6-9"),
    (23, 8, "0-1 2-4 5-7 8-10 11-13 14-16 17-19 20-22"),
    (100, 8, "0-11 12-24 25-36 37-49 50-61 62-74 75-86 87-99"),
    (300, 8, "0-36 37-74 75-111 112-149 150-186 187-224 225-261 262-299"),
]
DRAWN = [
    ("clip.mp4", 0, "33 71 98 143 154 215 248 277"),
    ("clip.mp4", 1, "16 41 111 117 169 221 249 278"),
    ("other.mp4", 0, "12 68 96 143 180 200 256 296"),
]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


@pytest.mark.parametrize(("frames", "segments", "expected"), TEST_TABLE)
def test_middles(frames: int, segments: int, expected: str) -> None:
    assert frame_indices(frames, Sampling(segments)) == _numbers(expected)


@pytest.mark.parametrize(("frames", "segments", "expected"), TRAIN_TABLE)
def test_ranges_that_training_draws_from(frames: int, segments: int, expected: str) -> None:
    ranges = " ".join(f"{low}-{high}" for low, high in segment_ranges(frames, segments))
    assert ranges == expected


@pytest.mark.parametrize(("name", "seed", "expected"), DRAWN)
def test_draws_depend_on_the_seed_and_the_name_alone(name: str, seed: int, expected: str) -> None:
    assert frame_indices(300, Sampling(8, "train", seed=seed), name) == _numbers(expected)


@pytest.mark.parametrize("compat", [None, "mmaction2"])
def test_uniform_is_that_of_mmaction2(compat: Compat | None) -> None:
    expected = _numbers("18 55 93 130 168 205 242 280")
    assert frame_indices(300, Sampling(8, "uniform", compat=compat)) == expected


@pytest.mark.parametrize("mode", ["test", "train", "uniform"])
def test_no_frames_and_too_many_are_errors(mode: Mode) -> None:
    with pytest.raises(InputError, match="no frames"):
        frame_indices(0, Sampling(8, mode))
    with pytest.raises(InputError, match="too many frames"):
        frame_indices(10**400, Sampling(mode=mode))


@given(COUNTS, SEGMENTS)
def test_middles_are_the_definition_in_fractions(frames: int, segments: int) -> None:
    width = Fraction(frames, segments)
    expected = tuple(math.floor(width * i + width / 2) for i in range(segments))
    assert frame_indices(frames, Sampling(segments)) == expected


@given(COUNTS, SEGMENTS)
def test_ranges_reach_every_frame_and_never_decrease(frames: int, segments: int) -> None:
    ranges = segment_ranges(frames, segments)
    reached = [index for low, high in ranges for index in range(low, high + 1)]
    assert reached == sorted(reached)
    if frames >= segments:
        assert reached == list(range(frames))
    assert min(reached) >= 0
    assert max(reached) < frames


@given(COUNTS, SEGMENTS, st.integers(0, 2**32 - 1), st.text())
def test_draws_lie_in_their_ranges(frames: int, segments: int, seed: int, name: str) -> None:
    drawn = frame_indices(frames, Sampling(segments, "train", seed=seed), name)
    ranges = segment_ranges(frames, segments)
    assert all(low <= at <= high for at, (low, high) in zip(drawn, ranges, strict=True))


def test_clips_start_where_they_still_fit() -> None:
    assert frame_indices(10, Sampling(2, clip_len=3, frame_interval=2)) == (1, 3, 5, 4, 6, 8)
    twice = Sampling(2, clip_len=2, twice=True)
    assert frame_indices(11, twice) == (2, 3, 7, 8, 0, 1, 5, 6)


def test_a_clip_longer_than_the_video() -> None:
    assert frame_indices(3, Sampling(1, clip_len=5)) == (0, 1, 2, 2, 2)
    assert frame_indices(3, Sampling(1, clip_len=5, out_of_bounds="loop")) == (0, 1, 2, 0, 1)
    with pytest.raises(InputError, match="clip of 5 frames"):
        frame_indices(3, Sampling(1, clip_len=5, out_of_bounds="error"))


@given(COUNTS, SEGMENTS)
def test_twice_adds_the_starts_of_the_segments(frames: int, segments: int) -> None:
    indices = frame_indices(frames, Sampling(segments, twice=True))
    assert indices[:segments] == frame_indices(frames, Sampling(segments))
    starts = [low for low, _ in segment_ranges(frames, segments)]
    assert list(indices[segments:]) == starts


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "train", "twice": True},
        {"mode": "uniform", "clip_len": 2},
        {"mode": "uniform", "compat": "tsn-pytorch"},
        {"compat": "tsn-pytorch", "frame_interval": 2},
        {"compat": "tsn-pytorch", "twice": True},
        {"compat": "mmaction2", "out_of_bounds": "error"},
        {"frame_interval": 10**400, "clip_len": 2},
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Sampling(**fields)


# The libraries' own arithmetic, in the numpy that they use.


def _mmaction2_frames(offsets: Indices, frames: int, sampling: Sampling) -> list[int]:
    steps = np.arange(sampling.clip_len)[None, :] * sampling.frame_interval
    inds = offsets[:, None] + steps
    if sampling.out_of_bounds == "clamp":  # its repeat_last
        safe = inds < frames
        last = np.max(safe * inds, axis=1)
        inds = safe * inds + ((1 - safe).T * last).T
    else:
        inds = np.mod(inds, frames)
    flat: list[int] = inds.reshape(-1).astype(np.int32).tolist()
    return flat


def _mmaction2_test(frames: int, sampling: Sampling) -> list[int]:
    clips = sampling.segments
    if sampling.clip_len == 1:
        average = frames / float(clips)
        base = np.arange(clips) * average
        offsets = base + average / 2.0
        if sampling.twice:
            offsets = np.concatenate([offsets, base])
    else:
        span = (sampling.clip_len - 1) * sampling.frame_interval + 1
        last = max(frames - span, 0)
        count = clips * 2 if sampling.twice else clips
        if count > 1:
            offsets = np.round(np.arange(count) * (last / float(clips - 1)))
        else:
            offsets = np.array([last // 2])
    return _mmaction2_frames(offsets, frames, sampling)


def _mmaction2_train(frames: int, sampling: Sampling) -> list[int]:
    clips, span = sampling.segments, sampling.clip_len * sampling.frame_interval
    average = (frames - span + 1) // clips
    if average > 0:
        offsets = np.arange(clips) * average + np.random.randint(average, size=clips)
    elif frames > max(clips, span):
        offsets = np.sort(np.random.randint(frames - span + 1, size=clips))
    elif average == 0:
        offsets = np.around(np.arange(clips) * ((frames - span + 1.0) / clips))
    else:
        offsets = np.zeros((clips,), dtype=np.int32)
    return _mmaction2_frames(offsets, frames, sampling)


def _mmaction2_uniform(frames: int, clip_len: int) -> list[int]:
    size = float(frames - 1) / clip_len
    return [int(np.round(size * i)) + int(size / 2 * 1) for i in range(clip_len)]


def _tsn_pytorch_frames(offsets: Indices, frames: int, length: int) -> list[int]:
    loaded = []
    for start in offsets + 1:  # it counts from 1
        at = int(start)
        for _ in range(length):
            loaded.append(at - 1)
            if at < frames:
                at += 1
    return loaded


def _tsn_pytorch_test(frames: int, segments: int, length: int) -> list[int]:
    tick = (frames - length + 1) / float(segments)
    offsets = np.array([int(tick / 2.0 + tick * x) for x in range(segments)])
    return _tsn_pytorch_frames(offsets, frames, length)


def _tsn_pytorch_train(frames: int, segments: int, length: int) -> list[int]:
    average = (frames - length + 1) // segments
    if average > 0:
        drawn = np.random.randint(average, size=segments)
        offsets = np.multiply(list(range(segments)), average) + drawn
    elif frames > segments:
        offsets = np.sort(np.random.randint(frames - length + 1, size=segments))
    else:
        offsets = np.zeros((segments,), dtype=np.int64)
    return _tsn_pytorch_frames(offsets, frames, length)


CLIPS = st.builds(
    Sampling,
    segments=SEGMENTS,
    clip_len=st.integers(1, 9),
    frame_interval=st.integers(1, 5),
    out_of_bounds=st.sampled_from([None, "loop", "clamp"]),
    compat=st.just("mmaction2"),
    twice=st.booleans(),
)
SEEDED = "a/clip.mp4"


def _seed_numpy(seed: int) -> None:
    np.random.seed([seed, crc32(SEEDED.encode())])


@given(COUNTS, CLIPS)
def test_mmaction2_to_the_bit(frames: int, sampling: Sampling) -> None:
    if sampling.twice and sampling.segments == 1 and sampling.clip_len > 1:
        with pytest.raises(InputError, match="divides by zero"):
            frame_indices(frames, sampling)
    else:
        assert list(frame_indices(frames, sampling)) == _mmaction2_test(frames, sampling)


@given(st.integers(1, 400), SEGMENTS, st.integers(1, 9), st.integers(1, 5), st.integers(0, 9))
def test_mmaction2_in_training_to_the_bit(
    frames: int, segments: int, length: int, interval: int, seed: int
) -> None:
    sampling = Sampling(segments, "train", length, interval, compat="mmaction2", seed=seed)
    _seed_numpy(seed)
    assert list(frame_indices(frames, sampling, SEEDED)) == _mmaction2_train(frames, sampling)


@given(COUNTS, SEGMENTS)
def test_uniform_to_the_bit(frames: int, segments: int) -> None:
    indices = frame_indices(frames, Sampling(segments, "uniform"))
    assert list(indices) == _mmaction2_uniform(frames, segments)


@given(COUNTS, SEGMENTS, st.integers(1, 9))
def test_tsn_pytorch_to_the_bit(frames: int, segments: int, length: int) -> None:
    expected = _tsn_pytorch_test(frames, segments, length)
    sampling = Sampling(segments, clip_len=length, compat="tsn-pytorch")
    if min(expected) < 0:
        with pytest.raises(InputError, match="asks for frame -"):
            frame_indices(frames, sampling)
    else:
        assert list(frame_indices(frames, sampling)) == expected


@given(st.integers(1, 400), SEGMENTS, st.integers(1, 9), st.integers(0, 9))
def test_tsn_pytorch_in_training_to_the_bit(
    frames: int, segments: int, length: int, seed: int
) -> None:
    sampling = Sampling(segments, "train", length, compat="tsn-pytorch", seed=seed)
    _seed_numpy(seed)
    try:
        expected = _tsn_pytorch_train(frames, segments, length)
    except ValueError:  # it draws from nothing
        with pytest.raises(InputError, match="tsn-pytorch fails"):
            frame_indices(frames, sampling, SEEDED)
    else:
        assert list(frame_indices(frames, sampling, SEEDED)) == expected


def test_the_faults_of_the_libraries_are_kept() -> None:
    assert frame_indices(6, Sampling(7, compat="mmaction2")) == (0, 1, 2, 2, 3, 4, 5)
    assert frame_indices(6, Sampling(7, compat="tsn-pytorch")) == (0, 1, 2, 2, 3, 4, 5)
    wrapped = frame_indices(3, Sampling(25, "train", compat="mmaction2"))
    assert wrapped[-4:] == (0, 0, 0, 0)
