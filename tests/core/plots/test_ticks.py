"""Axes have round numbers, and a thinned line looks as the whole one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pttool.core.plots.ticks import label, linear_ticks, log_ticks, thinned

NUMBERS = st.floats(-1e9, 1e9)


def test_round_numbers() -> None:
    assert linear_ticks(0.03, 1.04, 5) == [0.25, 0.5, 0.75, 1.0]
    assert linear_ticks(0, 299, 6) == [0, 50, 100, 150, 200, 250]
    assert linear_ticks(2, 2, 5) == [2]
    assert linear_ticks(0, 5e-324, 2) == [0]
    assert log_ticks(0.004, 1.2, 5) == [0.01, 0.1, 1]
    assert log_ticks(2, 9, 5) == [2, 4, 6, 8]


def test_ticks_are_written_with_as_few_digits_as_tell_them_apart() -> None:
    ticks = linear_ticks(0, 0.3, 3)
    assert [label(tick, ticks) for tick in ticks] == ["0", "0.1", "0.2", "0.3"]
    assert label(1000, [0, 1000]) == "1000"
    assert label(1e-5, [1e-5]) == "1e-5"
    assert label(2.5e7, [2.5e7]) == "2.5e7"


@given(NUMBERS, NUMBERS, st.integers(2, 12))
def test_ticks_lie_within_and_are_not_too_many(a: float, b: float, most: int) -> None:
    low, high = min(a, b), max(a, b)
    ticks = linear_ticks(low, high, most)
    slack = 1e-6 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert len(ticks) <= most + 1
    assert all(one < other for one, other in pairwise(ticks))


@given(st.lists(st.floats(-5, 5), min_size=200, max_size=400), st.integers(5, 20))
def test_thinning_keeps_the_ends_the_lowest_and_the_highest(ys: list[float], buckets: int) -> None:
    points = list(enumerate(ys))
    kept = thinned(points, buckets)
    assert len(kept) <= 4 * buckets or len(points) <= 4 * buckets
    assert set(kept) <= set(points)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert {min(y for _, y in kept), max(y for _, y in kept)} == {min(ys), max(ys)}
