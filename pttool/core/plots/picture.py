"""Draw a plot as a PNG or SVG picture with matplotlib, which is imported only here.

No pyplot: it would look for a display. The same plot gives the same bytes.
"""

import io
import warnings
from collections.abc import Sequence
from math import ceil, nan

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType

from pttool.core.plots.panels import Curve, Panel, Plot
from pttool.core.plots.ticks import thinned
from pttool.core.printable import printable

WIDTH, HEIGHT = 8.0, 3.0  # of a panel, in inches
ROOM = 0.9  # for the title and the x axis
DOTS_PER_INCH = 150
BUCKETS = 2000  # more points than a picture has columns
MOST_IN_CYCLE = 10  # colours that are told apart at a glance; more are taken from a scale
MOST_ABOVE = 8  # names of curves above the panels; more stand at their side
NAMES_PER_PANEL = 16  # in a column at the side
NAME_HEIGHT = 0.2  # in inches
LONGEST_NAME = 40
# matplotlib writes its version and the time into a picture unless told not to.
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def picture(plot: Plot, format: str) -> bytes:
    """Return a plot as the bytes of a picture; `format` is png or svg."""
    with warnings.catch_warnings(), mpl.rc_context({"svg.hashsalt": "pttool"}):
        # On characters that the font doesn't have, and on sums at the edge of what floats hold.
        warnings.simplefilter("ignore")
        return _pictured(plot, format)


def _pictured(plot: Plot, format: str) -> bytes:
    names, count = plot.names, len(plot.panels)
    columns = 1 if len(names) <= NAMES_PER_PANEL * count else 2
    height = max(HEIGHT * count + ROOM, NAME_HEIGHT * (2 + ceil(len(names) / columns)))
    figure = Figure((WIDTH, height), dpi=DOTS_PER_INCH, layout="constrained")
    rows = figure.subplots(count, 1, sharex=True, squeeze=False)
    colours = dict(zip(names, _colours(len(names)), strict=True))
    lines: dict[str, Line2D] = {}
    for axes, panel in zip(rows[:, 0], plot.panels, strict=True):
        for curve in panel.curves:
            lines[curve.name] = _draw(axes, panel, curve, colours[curve.name])
        _dress(axes, panel)
    rows[0, 0].set_title(_plain(plot.title), fontsize="medium")
    rows[-1, 0].set_xlabel(_plain(plot.x_label))
    if len(names) > 1:
        _add_legend(figure, lines, columns)
    stream = io.BytesIO()
    figure.savefig(stream, format=format, metadata=METADATA[format])
    return stream.getvalue()


def _colours(count: int) -> Sequence[ColorType]:
    if count <= MOST_IN_CYCLE:
        return [f"C{place}" for place in range(count)]
    scale = mpl.colormaps["turbo"]
    return [scale(0.05 + 0.9 * place / (count - 1)) for place in range(count)]


def _draw(axes: Axes, panel: Panel, curve: Curve, colour: ColorType) -> Line2D:
    """Draw one curve, and what it was smoothed from behind it; return its line."""
    if curve.raw is not None:
        x, y, _ = _points(panel, curve, curve.raw)
        axes.plot(x, y, color=colour, alpha=0.25, linewidth=1)
    x, y, lone = _points(panel, curve, curve.y)
    (line,) = axes.plot(
        x,
        y,
        color=colour,
        linewidth=1.5,
        marker="o" if lone else None,
        markersize=3,
        markevery=lone or None,
    )
    return line


def _points(
    panel: Panel, curve: Curve, y: Sequence[float]
) -> tuple[list[float], list[float], list[int]]:
    """Return the x and y of a line's pieces, NaN between them, and where lone points are."""
    points: list[tuple[float, float]] = []
    lone = []
    for piece in panel.pieces(curve, y):
        if len(piece) == 1:
            lone.append(len(points))
        points += [*thinned(piece, BUCKETS), (nan, nan)]
    return [x for x, _ in points], [value for _, value in points], lone


def _dress(axes: Axes, panel: Panel) -> None:
    axes.set_ylabel(_plain(panel.title))
    if panel.log_y:
        axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _add_legend(figure: Figure, lines: dict[str, Line2D], columns: int) -> None:
    is_above = len(lines) <= MOST_ABOVE
    legend = figure.legend(
        list(lines.values()),
        [_plain(_shortened(name)) for name in lines],
        loc="outside upper center" if is_above else "outside right upper",
        ncols=min(len(lines), 4) if is_above else columns,
        frameon=False,
        fontsize="small",
    )
    for line in legend.get_lines():
        line.set_linewidth(2.5)


def _shortened(name: str) -> str:
    """Return a name without its beginning, if it would leave the panels no room."""
    return name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]


def _plain(text: str) -> str:
    """Return text that matplotlib shows as it is: a $ would begin a formula."""
    return printable(text).replace("$", r"\$")
