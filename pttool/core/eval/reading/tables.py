"""A table: the named columns of one file, read in blocks of rows and as often as needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Shape = tuple[int, ...]
# Numbers as they were stored, or text.
Column = NDArray[Any] | list[str]
Columns = dict[str, Column]


def wide_keys(shapes: Mapping[str, Shape]) -> frozenset[str]:
    """Return the keys of arrays with two dimensions or more."""
    return frozenset(key for key, shape in shapes.items() if len(shape) > 1)


@dataclass(frozen=True, slots=True)
class Table:
    """A file's columns.

    `shapes` holds those that are known before a column is read; `wide` are the keys of columns
    with several values per sample. `read` gives the columns asked
    for in blocks of at most so many rows; it raises InputError for what can't be read.
    """

    name: str
    keys: tuple[str, ...]
    shapes: Mapping[str, Shape]
    wide: frozenset[str]
    read: Callable[[Sequence[str], int], Iterator[Columns]]
