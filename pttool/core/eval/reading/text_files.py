"""CSV, TSV and JSON-lines files, read line by line."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, TextIO

import numpy as np

from pttool.core.eval.reading.tables import Column, Columns, Table
from pttool.errors import InputError

LONGEST_LINE = 1 << 26
BLOCK_CELLS = 1 << 20  # a block of wide rows is cut to so many numbers
LISTS_HINT = "give each sample one number per class: a score, or 0 or 1 (not class numbers)"
Reopen = Callable[[], BinaryIO]
Rows = Iterator[tuple[Any, ...]]


def csv_table(name: str, reopen: Reopen, delimiter: str | None) -> Table:
    """Return a file with a header line; no delimiter: the first of tab , ; in that line."""
    with _text(reopen) as stream:
        first = next(_lines(stream, name), "")
    delimiter = delimiter or next((mark for mark in "\t,;" if mark in first), ",")
    with _text(reopen) as stream:
        header = next(_csv_rows(stream, name, delimiter), [])
    keys = tuple(cell.strip() for cell in header)

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        places = [_place(keys, key, name) for key in wanted]
        with _text(reopen) as stream:
            cells = _csv_rows(stream, name, delimiter)
            next(cells, None)
            picked = (tuple(row[place].strip() for place in places) for row in cells)
            for columns in _transposed(picked, rows):
                yield {key: list(column) for key, column in zip(wanted, columns, strict=True)}

    return Table(name, keys, {}, frozenset(), read)


def jsonl_table(name: str, reopen: Reopen) -> Table:
    """Return a file with one JSON object a line; its keys are those of the first."""
    with _text(reopen) as stream:
        first = next(_objects(stream, name), (0, {}))[1]

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        cells = _cells([first[key] for key in wanted if isinstance(first.get(key), list)])
        rows = max(1, min(rows, BLOCK_CELLS // max(cells, 1)))
        with _text(reopen) as stream:
            picked = (_pick(found, line, wanted, name) for line, found in _objects(stream, name))
            for columns in _transposed(picked, rows):
                yield {
                    key: column_of(column, f"{name}: {key}")
                    for key, column in zip(wanted, columns, strict=True)
                }

    wide = frozenset(key for key, value in first.items() if isinstance(value, list))
    return Table(name, tuple(first), {}, wide, read)


def _cells(lists: Sequence[Any]) -> int:
    """Return how many values lie in lists, and in the lists in them."""
    count, left = 0, list(lists)
    while left:
        value = left.pop()
        if isinstance(value, list):
            left.extend(value)
        else:
            count += 1
    return count


def column_of(values: Sequence[Any], what: str) -> Column:
    """Return Python values, all text or all numbers or lists of one length, as a column."""
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return list(values)
    if not kinds <= {int, float, bool} and kinds != {list}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(
            f"{what}: holds values of type {names}",
            "give a number or a text for every sample, not both, and no null",
        )
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        message = f"{what}: holds lists of different lengths or depths"
        raise InputError(message, LISTS_HINT) from error
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{what}: holds more than numbers of 64 bits", "give class numbers or scores"
        )
    return array


def _place(keys: tuple[str, ...], key: str, name: str) -> int:
    if keys.count(key) > 1:
        raise InputError(f"{name}: has {keys.count(key)} columns {key!r}", "rename all but one")
    return keys.index(key)


def _transposed(rows: Rows, size: int) -> Iterator[tuple[tuple[Any, ...], ...]]:
    while block := list(islice(rows, size)):
        yield tuple(zip(*block, strict=True))


def _csv_rows(stream: TextIO, name: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(_lines(stream, name), delimiter=delimiter, strict=True)
    width = None
    try:
        for row in reader:
            width = len(row) if width is None else width
            if len(row) == width:
                yield row
            elif row:
                raise InputError(
                    f"{name}: line {reader.line_num} has {len(row)} cells, the header {width}",
                    "quote cells that hold the delimiter",
                )
    except csv.Error as error:
        message = f"{name}: line {reader.line_num} is no valid CSV: {error}"
        raise InputError(message, "check its quotes") from error


def _pick(found: dict[str, Any], line: int, wanted: Sequence[str], name: str) -> tuple[Any, ...]:
    try:
        return tuple(found[key] for key in wanted)
    except KeyError as error:
        message = f"{name}: line {line} has no {error.args[0]!r}"
        raise InputError(message, "every line needs the keys of the first") from error


def _objects(stream: TextIO, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_lines(stream, name), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            message = f"{name}: line {number} is no JSON: {json_fault(error)}"
            raise InputError(message, "one JSON object a line; an array: jq -c '.[]'") from error
        if not isinstance(found, dict):
            message = f"{name}: line {number} is no JSON object"
            raise InputError(message, "one object a line; an array: jq -c '.[]'")
        yield number, found


def json_fault(error: Exception) -> str:
    """Return why JSON can't be read; Python's words on long numbers are for programmers."""
    if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
        return "it holds a number of over 4300 digits"
    return str(error)


def _text(reopen: Reopen) -> TextIO:
    """Open UTF-8 text; the mark that some editors put in front is left out."""
    return io.TextIOWrapper(reopen(), "utf-8-sig", newline="")


def _lines(stream: TextIO, name: str) -> Iterator[str]:
    try:
        while line := stream.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise InputError(
                    f"{name}: has a line of over {len(line)} characters", "is it text?"
                )
            yield line
    except UnicodeDecodeError as error:
        hint = "give npz, npy, csv, tsv, jsonl, parquet or pt; text as UTF-8"
        raise InputError(f"{name}: is no UTF-8 text", hint) from error
