"""CSV and TSV logs, with or without a header, also while they are being written."""

import csv
import io
from collections.abc import Iterator

from pttool.core.curve.logs import Log, is_number
from pttool.errors import InputError

SEPARATORS = "\t,;"


def separator_of(line: str) -> str | None:
    """Return what separates the cells of a header, if anything does."""
    return next((mark for mark in SEPARATORS if mark in line), None)


def read_table(name: str, text: str) -> Log:
    """Return the columns of a CSV or TSV; without a header they are called 1, 2, ...

    A last line without its end may be cut short, and is left out if it has too few cells; so are
    repeated headers, which a resumed run writes. Raises InputError for a row of another width.
    """
    first = text.lstrip().partition("\n")[0]
    rows = _rows(name, text, separator_of(first) or ",")
    _, header = next(rows, (0, []))
    log = Log(name)
    if header and all(map(is_number, header)):
        keys = [str(number) for number in range(1, len(header) + 1)]
        log.add_row(dict(zip(keys, header, strict=True)), "line 1")
    else:
        keys = header
        _check_header(name, keys)
    is_cut = not text.endswith(("\n", "\r"))
    last = text.rstrip().count("\n") + 1
    for line, row in rows:
        if len(row) == len(keys) and row != keys:
            log.add_row(dict(zip(keys, row, strict=True)), f"line {line}")
        elif len(row) < len(keys) and is_cut and line >= last:
            log.notes.append(f"{name}: the last line is cut short, and left out")
        elif row != keys:
            raise InputError(
                f"{name}: line {line} has {len(row)} cells, the header {len(keys)}",
                "is it one table? quote cells that hold the separator",
            )
    return log


def _check_header(name: str, keys: list[str]) -> None:
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InputError(f"{name}: has {keys.count(twice)} columns {twice!r}", "rename all but one")


def _rows(name: str, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that aren't empty, with the line that each ends in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        message = f"{name}: line {reader.line_num} is no valid CSV: {error}"
        raise InputError(message, "check its quotes") from error
