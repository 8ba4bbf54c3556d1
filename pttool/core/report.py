"""The one currency between core and the command line: a Report of raw numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pttool.errors import PttoolError

# A kind says how a value is written for people; data formats ignore it.
#   tree   a dotted name, drawn as a tree by the item's "depth"
#   count  a whole number       bytes   a size in bytes
#   number any other number
#   ratio  a fraction of 1      seconds a duration
#   score  a metric             tally   a list of {class, count}
#   interval  [low, high] of a metric    p_value  a probability that may be tiny
#   pairs  a list of confused pairs, {label_name, predicted_name, count}: a line each
#   shape  a tensor's shape, or shapes nested in lists and dicts
#   list   texts with commas between them, or names and their values
Kind = Literal[
    "text", "tree", "count", "number", "bytes", "ratio", "score", "seconds", "shape", "flag",
    "tally", "list", "interval", "p_value", "pairs",
]  # fmt: skip

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, or one line of its footer: the key of a value and how to show it.

    In a footer's key, dots lead into mappings: `ci.accuracy`.

    An optional column is left out of a terminal that is too narrow for it.
    """

    key: str
    title: str
    kind: Kind = "text"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found.

    Every item holds the `fields`, in that order and raw; `columns` are those that a table shows.
    `summary` holds the totals; `footer` picks those that a table shows below its rows.
    `failure` is raised once the report is written: what was reached is shown, and the exit code
    still tells.
    """

    fields: tuple[str, ...]
    columns: tuple[Column, ...]
    items: Sequence[Item]
    summary: Mapping[str, Any] = field(default_factory=dict)
    footer: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    failure: PttoolError | None = None

    def noting(self, note: str) -> "Report":
        """Return the report with one more note."""
        return replace(self, notes=(*self.notes, note))

    def total(self, column: Column) -> Any:
        """Return the value of a footer's column."""
        value: Any = self.summary
        for key in column.key.split("."):
            value = value[key]
        return value

    def select(self, keys: Sequence[str]) -> "Report":
        """Return the report with just these columns and fields, in this order."""
        known = {column.key: column for column in self.columns}
        columns = tuple(known.get(key, Column(key, key)) for key in keys)
        return replace(self, fields=tuple(keys), columns=columns)
