"""A training log as columns of numbers, and how a cell becomes one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Numbers = dict[int, float]  # by row; a row without the number is left out
# What logs write where they have no number.
MISSING = frozenset({"", "-", "null", "none", "na", "n/a"})


@dataclass(slots=True)
class Log:
    """One run: its columns by name, each with its numbers by row, counted from 0.

    `texts` holds, of each column that isn't all numbers, the first other value and its place.
    """

    name: str
    columns: dict[str, Numbers] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    notes: list[str] = field(default_factory=list)

    def add_row(self, cells: Mapping[str, object], place: str) -> None:
        """Add a row of values, of which those that are no numbers are noted as texts."""
        for key, cell in cells.items():
            number = _number(cell)
            if number is not None:
                self.columns.setdefault(key, {})[self.rows] = number
            elif not _is_missing(cell):
                self.texts.setdefault(key, f"{cell!r} in {place}")
        self.rows += 1

    @property
    def numeric(self) -> list[str]:
        """The columns that hold nothing but numbers."""
        return [key for key in self.columns if key not in self.texts]


def is_number(cell: str) -> bool:
    """Whether a cell of text is a number, NaN and infinities included."""
    return _number(cell) is not None


def _number(cell: object) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)
