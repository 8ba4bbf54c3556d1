"""Draw a plot as text: braille dots in colours, letters without colour, or plain ASCII.

plotille draws the lines: pure Python without dependencies, where plotext 6 loads a compiled library
and lays its legend over the curves. It is imported only here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10

import plotille

from pttool.core.plots.panels import Curve, Panel, Plot, has_place
from pttool.core.plots.ticks import label, linear_ticks, log_ticks, thinned
from pttool.core.printable import printable

# The terminal's own colours (ECMA-48, SGR): blue, red, green, magenta, cyan, yellow, then brighter.
# plotille.color would ask the environment again whether colours are wanted.
COLOURS = (34, 31, 32, 35, 36, 33, 94, 91, 92, 95, 96, 93)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ROWS = 14  # of a panel
NARROWEST = 10  # of the area that lines are drawn in
EMPTY = "\u2800"  # a braille character without dots
ASCII_FRAME = str.maketrans("┤│└─┬", "||+-+")


@dataclass(frozen=True, slots=True)
class Ink:
    """What may be written: colours or not, and any character or just ASCII."""

    names: Sequence[str]
    colour: bool
    ascii_only: bool

    @property
    def uses_letters(self) -> bool:
        """Whether curves are told apart by letters."""
        return len(self.names) > 1 and not self.colour

    def mark(self, name: str, dots: str) -> str:
        """Return what shows a curve in a cell, given the dots of its line there."""
        place = self.names.index(name)
        if self.uses_letters:
            return LETTERS[place % len(LETTERS)]
        if self.ascii_only:
            dots = "*"
        if not self.colour:
            return dots
        return f"\x1b[{COLOURS[place % len(COLOURS)]}m{dots}\x1b[39m"


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis, and its round numbers."""

    low: float
    high: float
    ticks: Sequence[float]
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        if not self.low < self.high:
            return 0.5
        if self.log:
            return log10(value / self.low) / log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def draw(plot: Plot, *, width: int, colour: bool, ascii_only: bool) -> str:
    """Return the panels of a plot as lines of at most `width` characters, ended by a new line.

    With `colour`, curves are told apart by the terminal's own colours, else by letters.
    """
    ink = Ink(plot.names, colour, ascii_only)
    lines = [printable(plot.title)] if plot.title else []
    for panel in plot.panels:
        lines += _panel(panel, plot, ink, width)
    if len(ink.names) > 1:
        lines += _legend(ink, width)
    text = "".join(line.rstrip() + "\n" for line in lines)
    return text.encode("ascii", "backslashreplace").decode() if ascii_only else text


def _panel(panel: Panel, plot: Plot, ink: Ink, width: int) -> Iterator[str]:
    ys = [y for curve in panel.curves for piece in panel.pieces(curve, curve.y) for _, y in piece]
    yield printable(panel.title)
    if not ys:
        yield "  no values"
        return
    low, high = min(ys), max(ys)
    make = log_ticks if panel.log_y else linear_ticks
    y_axis = Axis(low, high, make(low, high, ROWS // 3 + 1), panel.log_y)
    labels = {_row(y_axis, tick): label(tick, y_axis.ticks) for tick in y_axis.ticks}
    margin = max(map(len, labels.values()), default=0)
    columns = max(width - margin - 2, NARROWEST)
    xs = [x for each in plot.panels for curve in each.curves for x in curve.x if has_place(x)]
    x_axis = Axis(min(xs), max(xs), linear_ticks(min(xs), max(xs), max(2, columns // 12)))
    frame = ASCII_FRAME if ink.ascii_only else {}
    for row, cells in enumerate(_cells(panel, x_axis, y_axis, ink, columns)):
        border = "┤" if row in labels else "│"
        yield f"{labels.get(row, ''):>{margin}} {border.translate(frame)}" + "".join(cells)
    yield from (line.translate(frame) for line in _x_lines(x_axis, plot.x_label, margin, columns))


def _row(axis: Axis, value: float) -> int:
    """Return the row of a value, counted from above."""
    return ROWS - 1 - round(axis.place(value) * (4 * ROWS - 1)) // 4


def _cells(panel: Panel, x: Axis, y: Axis, ink: Ink, columns: int) -> list[list[str]]:
    """Return the characters of the drawing, each with its colour; later curves lie above."""
    cells = [[" "] * columns for _ in range(ROWS)]
    for curve in panel.curves:
        for row, line in enumerate(_line(panel, curve, x, y, columns)):
            for column, dots in enumerate(line):
                if dots != EMPTY:
                    cells[row][column] = ink.mark(curve.name, dots)
    return cells


def _line(panel: Panel, curve: Curve, x: Axis, y: Axis, columns: int) -> list[str]:
    """Return the rows of one curve in braille."""
    right, top = 2 * columns - 1, 4 * ROWS - 1
    canvas = plotille.Canvas(columns, ROWS, xmin=0, ymin=0, xmax=right + 1, ymax=top + 1)
    for piece in panel.pieces(curve, curve.y):
        dots = [(x.place(a) * right, y.place(b) * top) for a, b in thinned(piece, 2 * columns)]
        for start, end in zip(dots, dots[1:] or dots, strict=False):
            canvas.line(*start, *end)
    return str(canvas.plot(linesep="\n")).split("\n")


def _x_lines(axis: Axis, title: str, margin: int, columns: int) -> Iterator[str]:
    """Yield the x axis, its numbers, and its title."""
    border, numbers = ["─"] * columns, [" "] * columns
    free = 0
    for tick in axis.ticks:
        place = round(axis.place(tick) * (2 * columns - 1)) // 2
        text = label(tick, axis.ticks)
        start = min(max(place - len(text) // 2, 0), columns - len(text))
        if start >= free:
            border[place] = "┬"
            numbers[start : start + len(text)] = text
            free = start + len(text) + 1
    yield " " * margin + " └" + "".join(border)
    yield " " * (margin + 2) + "".join(numbers)
    yield " " * (margin + 2) + printable(title).center(columns)


def _legend(ink: Ink, width: int) -> Iterator[str]:
    """Yield the names of the curves beside their marks, in as many columns as fit."""
    line = "-" if ink.ascii_only else "─"
    shown = {name: printable(name) for name in ink.names}
    across = max(map(len, shown.values())) + 6
    per_line = max(1, width // across)
    for start in range(0, len(ink.names), per_line):
        cells = []
        for name in ink.names[start : start + per_line]:
            mark = ink.mark(name, line * (1 if ink.uses_letters else 2))
            cells.append(f"  {mark} {shown[name]:<{across - 6}}")
        yield "".join(cells)
