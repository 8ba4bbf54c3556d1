"""Segmentation: label maps of any shape as a flat table, in which every pixel is a sample."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod

from pttool.core.eval.reading.keys import INDEX_KEYS, SCORES_KEYS
from pttool.core.eval.reading.tables import Columns, Shape, Table
from pttool.errors import InputError


def of_pixels(table: Table, named: Collection[str | None] = ()) -> Table:
    """Return the table with its maps flattened; the maps of a sample must agree in shape.

    Score maps and indices of samples are left out, but for `named` ones: the prediction is a map of
    classes. Raises InputError, while it is read, for maps of different shapes.
    """
    left_out = {*SCORES_KEYS, *INDEX_KEYS} - set(named)

    def read(keys: Sequence[str], rows: int) -> Iterator[Columns]:
        size = max(
            (prod(shape[1:]) for shape in table.shapes.values() if len(shape) > 1), default=1
        )
        for columns in table.read(keys, max(1, rows // max(size, 1))):
            _check_same(table.name, columns)
            yield {
                key: column if isinstance(column, list) else column.reshape(-1)
                for key, column in columns.items()
            }

    return replace(
        table,
        keys=tuple(key for key in table.keys if key not in left_out),
        shapes={key: (prod(shape),) for key, shape in table.shapes.items()},
        wide=frozenset(),
        read=read,
    )


def _check_same(name: str, columns: Columns) -> None:
    shapes: dict[str, Shape] = {
        key: (len(column),) if isinstance(column, list) else column.shape
        for key, column in columns.items()
    }
    (first, shape), *others = shapes.items()
    for key, other in others:
        if other != shape:
            raise InputError(
                f"{name}: maps of {first} have shape {shape[1:]}, those of {key} {other[1:]}",
                "predictions need the size of the labels",
            )
