"""The clock that timestamps tell."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pttool.core.video.timing import longest_gop, timing
from pttool.core.video.types import FrameIndex

MS = Fraction(1, 1000)
RATES = [Fraction(24000, 1001), Fraction(25), Fraction(30000, 1001), Fraction(60), Fraction(15, 2)]


def _index(
    pts: list[int | None], time_base: Fraction = MS, keyframes: tuple[int, ...] = (0,)
) -> FrameIndex:
    return FrameIndex(tuple(pts), time_base, keyframes, "packets")


@given(st.sampled_from(RATES), st.integers(2, 400), st.integers(0, 10**6))
def test_a_rate_in_rounded_milliseconds_is_even_and_exact(
    rate: Fraction, frames: int, start: int
) -> None:
    pts: list[int | None] = [start + round(1000 * i / rate) for i in range(frames)]
    told = timing(_index(pts), None, [rate], has_clock=True)
    assert (told.fps, told.is_vfr, told.fps_source) == (rate, False, "timestamps")
    assert told.duration_s == pytest.approx(float(frames / rate), abs=0.003)
    assert told.start_s == start / 1000


def test_a_header_that_timestamps_contradict_is_not_believed() -> None:
    told = timing(_index([0, 40, 80, 120]), 40, [Fraction(1000)], has_clock=True)
    assert (told.fps, told.duration_s) == (Fraction(25), 0.16)


def test_one_frame_left_out_makes_the_rate_uneven() -> None:
    told = timing(_index([0, 40, 80, 160, 200]), 40, [Fraction(25)], has_clock=True)
    assert told.is_vfr
    assert told.fps == Fraction(5 * 1000, 240)


@pytest.mark.parametrize("pts", [[None, 40, 80], [80, 40, 0], [7, 7], [7]])
def test_without_a_clock_the_rate_is_that_of_the_header(pts: list[int | None]) -> None:
    told = timing(_index(pts), None, [Fraction(25)], has_clock=True)
    assert (told.fps, told.fps_source, told.is_vfr) == (Fraction(25), "header", None)
    assert told.duration_s == len(pts) / 25
    assumed = timing(_index(pts), None, [Fraction(25)], has_clock=False)
    assert (assumed.fps_source, assumed.start_s) == ("assumed", None)


def test_nothing_is_known_without_any_rate() -> None:
    told = timing(_index([None, None]), None, [], has_clock=True)
    assert (told.fps, told.fps_source, told.duration_s) == (None, None, None)


@pytest.mark.parametrize(
    ("keyframes", "longest"), [((0, 12, 24, 36), 12), ((0,), 40), ((5, 10), 30), ((), None)]
)
def test_the_longest_gop_reaches_up_to_the_next_keyframe_or_the_end(
    keyframes: tuple[int, ...], longest: int | None
) -> None:
    assert longest_gop(_index(list(range(40)), keyframes=keyframes)) == longest
