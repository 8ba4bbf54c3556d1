"""Drawings in characters and pictures: what is in them, and that nothing spoils a terminal."""

from math import nan
from xml.etree import ElementTree

import pytest

from pttool.core.plots.panels import Curve, Panel, Plot
from pttool.core.plots.picture import picture
from pttool.core.plots.terminal import ROWS, draw

RISING = Curve("up", range(100), [float(y) for y in range(100)])
FALLING = Curve("down", range(100), [float(99 - y) for y in range(100)])


def _plot(*curves: Curve, log: bool = False) -> Plot:
    return Plot((Panel("loss", curves, log_y=log),), "step")


def _area(text: str) -> list[str]:
    """Return the rows between the title and the x axis, right of the y axis."""
    return [
        line.replace("┤", "│").replace("|", "│").split("│")[1]
        for line in text.split("\n")[1 : ROWS + 1]
    ]


def test_a_line_runs_from_corner_to_corner() -> None:
    area = _area(draw(_plot(RISING), width=60, colour=False, ascii_only=True))
    assert area[-1].startswith("*")
    assert area[0].endswith("*")
    assert len(area[0]) == 60 - len("25 |")
    columns = [line.index("*") for line in area]
    assert columns == sorted(columns, reverse=True)


def test_without_colour_curves_are_told_apart_by_letters() -> None:
    text = draw(_plot(RISING, FALLING), width=60, colour=False, ascii_only=False)
    area = _area(text)
    assert (area[0][0], area[0].rstrip()[-1]) == ("b", "a")
    assert text.splitlines()[-1].split() == ["a", "up", "b", "down"]


def test_colour_only_where_it_is_wanted() -> None:
    plot = _plot(RISING, FALLING)
    assert "\x1b[" in draw(plot, width=60, colour=True, ascii_only=False)
    assert "\x1b" not in draw(plot, width=60, colour=False, ascii_only=False)
    assert draw(plot, width=60, colour=False, ascii_only=True).isascii()


@pytest.mark.parametrize("width", [5, 20, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = draw(_plot(RISING), width=width, colour=False, ascii_only=False)
    assert max(map(len, text.splitlines())) <= max(width, 16)


def test_what_is_not_finite_breaks_the_line() -> None:
    gap = [nan if 40 <= x < 60 else 1.0 + x / 1000 for x in range(100)]
    area = _area(draw(_plot(Curve("a", range(100), gap)), width=105, colour=False, ascii_only=True))
    joined = ["".join(row).strip() != "" for row in zip(*(f"{r:100}" for r in area), strict=True)]
    assert joined[10]
    assert not joined[50]
    assert joined[90]


def test_names_cannot_act_on_the_terminal() -> None:
    evil = Curve("\x1b[2J\nx", [0, 1], [0, 1])
    text = draw(_plot(evil, RISING), width=60, colour=False, ascii_only=False)
    assert "\x1b" not in text
    assert "\\x1b[2J\\nx" in text


def test_no_values_and_a_single_one() -> None:
    assert "no values" in draw(
        _plot(Curve("a", [1], [nan])), width=60, colour=False, ascii_only=True
    )
    assert "*" in draw(_plot(Curve("a", [1], [2])), width=60, colour=False, ascii_only=True)
    assert "no values" in draw(
        _plot(Curve("a", [1], [-2]), log=True), width=60, colour=False, ascii_only=True
    )


@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_same_picture_twice(format: str) -> None:
    plot = _plot(RISING, Curve("_$x_1$ é", range(100), FALLING.y, raw=RISING.y), log=True)
    content = picture(plot, format)
    assert content == picture(plot, format)
    if format == "png":
        assert content.startswith(b"\x89PNG")
        assert b"matplotlib" not in content
    else:
        assert ElementTree.fromstring(content).tag.endswith("svg")
        assert b"<dc:date>" not in content


def test_many_runs_and_long_names_still_leave_a_picture() -> None:
    curves = [Curve(f"{'long/' * 30}{k}", range(5), [k] * 5) for k in range(40)]
    assert picture(_plot(*curves), "svg").count(b'id="line2d_') > 80
