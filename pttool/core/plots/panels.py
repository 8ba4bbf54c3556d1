"""What a plot shows, before anybody draws it: panels of named curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Beyond it the length of an axis, or the margin of a logarithmic one, would be infinite.
LARGEST = 1e250


def has_place(value: float) -> bool:
    """Whether a value can be drawn on an axis: it is finite, and no more than LARGEST."""
    return abs(value) <= LARGEST


@dataclass(frozen=True, slots=True)
class Curve:
    """Points joined in their order: `x` and `y` of one length.

    A y that has no place breaks the line. `raw` is what y was smoothed from, drawn faintly.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    raw: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that share a y axis, which is logarithmic or not; the title says what y is."""

    title: str
    curves: tuple[Curve, ...]
    log_y: bool = False

    def shows(self, y: float) -> bool:
        """Whether a value has a place on the y axis."""
        return has_place(y) and (y > 0 or not self.log_y)

    def pieces(self, curve: Curve, y: Sequence[float]) -> Iterator[list[tuple[float, float]]]:
        """Yield the unbroken pieces of a line through (curve.x, y)."""
        piece: list[tuple[float, float]] = []
        for point in zip(curve.x, y, strict=True):
            if has_place(point[0]) and self.shows(point[1]):
                piece.append(point)
            elif piece:
                yield piece
                piece = []
        if piece:
            yield piece


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels one below the other; a curve's name has one colour in all of them."""

    panels: tuple[Panel, ...]
    x_label: str
    title: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the curves, each once."""
        curves = (curve for panel in self.panels for curve in panel.curves)
        return list(dict.fromkeys(curve.name for curve in curves))
