"""Draw a Report as a table, and say how each kind of number is written for people."""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pttool.core.report import Column, Item, Report
from pttool.values import printable, raw_cell

ROOT_NAME = "(root)"
UNKNOWN = "-"
COLUMN_GAP = "  "
USUAL_WIDTH = 80
MOST_HELD = 20_000  # rows of a piped table
NARROWEST = 5  # of a column of text, for numbers to stay on one line


@dataclass(frozen=True, slots=True)
class Paper:
    """What a table is drawn on: a terminal has a width."""

    encoding: str
    width: int = 0
    colour: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether some characters can't be written."""
        return not self.encoding.lower().startswith("utf")

    @classmethod
    def of_descriptor(cls, descriptor: int, encoding: str) -> "Paper":
        """Return an open file's paper: NO_COLOR beats FORCE_COLOR beats the terminal."""
        terminal = os.isatty(descriptor)
        forced = os.environ.get("FORCE_COLOR", "").lower() not in ("", "0", "false")
        unwanted = os.environ.get("FORCE_COLOR", "").lower() in ("0", "false")
        plain = unwanted or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        width = _terminal_width(descriptor) if terminal else 0
        return cls(encoding, width, (terminal or forced) and not plain)


def table(report: Report, header: bool, paper: Paper) -> Iterator[str]:
    """Draw the rows and, with a header, the footer."""
    draw = _terminal_table if paper.width else _piped_table
    yield from draw(report, header, paper)
    if header and report.footer:
        yield from _footer(report, paper)


def human(value: Any, column: Column) -> str:
    """Return a value as people read it."""
    if value is None or (value in ("", [], {}) and column.kind != "shape"):
        return UNKNOWN
    match column.kind:
        case "count":
            return f"{value:,}"
        case "number":
            return f"{value:.6g}"
        case "bytes":
            return _scaled(value, 1024, (" B", " KiB", " MiB", " GiB", " TiB", " PiB"))
        case "ratio":
            return f"{100 * value:.1f} %"
        case "score":
            return f"{value:.3f}"
        case "tally":
            return " ".join(f"{each['class']}:{each['count']}" for each in value)
        case "interval":
            return f"{value[0]:.3f} to {value[1]:.3f}"
        case "p_value":
            return f"{value:.3g}"
        case "seconds":
            return f"{value:.3f} s"
        case "list":
            pairs = value.items() if isinstance(value, Mapping) else ((one, None) for one in value)
            return ", ".join(str(key) if text is None else f"{key} {text}" for key, text in pairs)
        case "flag":
            return "yes" if value else "no"
    return raw_cell(value)


def _piped_table(report: Report, header: bool, paper: Paper) -> Iterator[str]:
    """Columns aligned by spaces, exact numbers, nothing cut: made for grep, awk and sort."""
    columns = report.columns

    def drawn() -> Iterator[list[str]]:
        if header:
            yield [column.title.replace(" ", "_") for column in columns]
        for item in report.items:
            yield [_piped_cell(item, column, paper) for column in columns]

    # Many rows are drawn twice: held as text they would take more memory than all else.
    rows = None if len(report.items) > MOST_HELD else list(drawn())
    widths = [0] * len(columns)
    for row in rows or drawn():
        widths = [max(pair) for pair in zip(widths, map(_width, row), strict=True)]
    for index, row in enumerate(rows or drawn()):
        padded = []
        for cell, column, width in zip(row, columns, widths, strict=False):
            padding = " " * (width - _width(cell))
            padded.append(padding + cell if _is_number(column) else cell + padding)
        line = COLUMN_GAP.join(padded).rstrip(" ")
        bold = header and index == 0 and paper.colour
        yield (f"\x1b[1m{line}\x1b[0m" if bold else line) + "\n"


def _width(cell: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    if cell.isascii():  # what cell_len finds out at ten times the price
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _piped_cell(item: Item, column: Column, paper: Paper) -> str:
    value = item.get(column.key)
    if column.kind == "tree":
        value = value or ROOT_NAME
    if column.kind == "score" and value is not None:
        return f"{value:.6f}"
    if column.kind in ("tally", "list"):
        return _shown(human(value, column), paper)
    is_unknown = value == [] and column.kind != "shape"
    return _shown(UNKNOWN if is_unknown else raw_cell(value) or UNKNOWN, paper)


def _terminal_table(report: Report, header: bool, paper: Paper) -> Iterator[str]:
    from rich.box import ASCII_DOUBLE_HEAD, SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = paper.width
    cells = _terminal_cells(report, paper)
    columns = _that_fit(report.columns, cells, width)
    roomy = width >= _least_width(columns, cells)
    box = ASCII_DOUBLE_HEAD if paper.is_narrow else SIMPLE_HEAD
    grid = Table(box=box, show_header=header, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        number = _is_number(column)
        justify: Literal["right", "left"] = "right" if number else "left"
        grid.add_column(
            Text(column.title), justify=justify, overflow="fold", no_wrap=number and roomy
        )
    for row in zip(*(cells[column.key] for column in columns), strict=True):
        grid.add_row(*map(Text, row))
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=True,
        color_system="standard" if paper.colour else None,
        highlight=False,
        legacy_windows=False,
    )
    console.print(grid)
    yield stream.getvalue()
    if len(columns) < len(report.columns):
        left_out = [column.title for column in report.columns if column not in columns]
        yield f"(too narrow for: {', '.join(left_out)})\n"


def _terminal_cells(report: Report, paper: Paper) -> dict[str, list[str]]:
    """Return the cells of each column."""
    cells = {
        column.key: [_shown(human(item.get(column.key), column), paper) for item in report.items]
        for column in report.columns
    }
    for column in report.columns:
        if column.kind == "tree":
            cells[column.key] = [_shown(text, paper) for text in _branches(report, column)]
    return cells


def _branches(report: Report, column: Column) -> Iterator[str]:
    """Yield dotted names as a tree: indented, and without the name of the row they hang from."""
    above: list[str] = []
    for item in report.items:
        name, depth = str(item[column.key]), int(item.get("depth", 0))
        del above[depth:]
        parent = f"{above[-1]}." if above and above[-1] else ""
        above.append(name)
        yield "  " * depth + (name.removeprefix(parent) or ROOT_NAME)


def _that_fit(columns: Sequence[Column], cells: dict[str, list[str]], width: int) -> list[Column]:
    """Return the columns without those optional ones, last first, that there is no room for."""
    from rich.cells import cell_len

    fitting = list(columns)
    needed = {c.key: max(map(cell_len, [c.title, *cells[c.key]])) for c in columns}
    for column in reversed(columns):
        if sum(needed[c.key] + len(COLUMN_GAP) for c in fitting) - len(COLUMN_GAP) <= width:
            break
        if column.optional:
            fitting.remove(column)
    return fitting


def _least_width(columns: Sequence[Column], cells: dict[str, list[str]]) -> int:
    """Return the width with numbers on one line and text folded."""
    from rich.cells import cell_len

    widths = (
        max(map(cell_len, [c.title, *cells[c.key]])) if _is_number(c) else NARROWEST
        for c in columns
    )
    return sum(widths) + 2 * len(columns)


def _terminal_width(descriptor: int) -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return os.get_terminal_size(descriptor).columns or USUAL_WIDTH


def _footer(report: Report, paper: Paper) -> Iterator[str]:
    width = max(len(column.title) for column in report.footer) + 2
    yield "\n"
    for column in report.footer:
        value = report.total(column)
        if column.kind == "pairs":
            yield from _pair_lines(value, column, paper)
            continue
        text = human(value, column)
        if column.kind == "count" and value is not None and value >= 1000:
            text += f" ({_scaled(value, 1000, ('', ' K', ' M', ' G', ' T', ' P'))})"
        yield _shown(f"{column.title + ':':<{width}}{text}", paper) + "\n"


def _pair_lines(pairs: Sequence[Item], column: Column, paper: Paper) -> Iterator[str]:
    yield f"{column.title}:\n"
    width = max((len(f"{pair['count']:,}") for pair in pairs), default=0)
    for pair in pairs:
        told = f"{pair['label_name']} taken for {pair['predicted_name']}"
        yield _shown(f"  {pair['count']:>{width},}  {told}", paper) + "\n"


def _scaled(value: float, step: int, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if abs(value) < step:
            return f"{value:.4g}{unit}"
        value = value / step
    return f"{value:.4g}{units[-1]}"


def _is_number(column: Column) -> bool:
    return column.kind in ("count", "number", "bytes", "ratio", "score", "seconds")


def _shown(text: str, paper: Paper) -> str:
    return printable(text).encode(paper.encoding, "backslashreplace").decode(paper.encoding)
