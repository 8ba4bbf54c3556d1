"""A Report as data: JSON, NDJSON, CSV and TSV carry every field, raw."""

from collections.abc import Iterator, Sequence

from pttool.core.csv_cells import quoted
from pttool.core.report import Item, Report
from pttool.values import json_text, raw_cell

SCHEMA = 1


def json_document(command: str, report: Report, *, ascii_only: bool) -> Iterator[str]:
    """Yield one document with an item a line, so that a long one can be read and grepped."""
    yield f'{{"schema": {SCHEMA}, "command": {json_text(command)},\n"items": ['
    for index, item in enumerate(report.items):
        yield (",\n" if index else "\n") + _item(report, item, ascii_only)
    summary = json_text(report.summary, ascii_only=ascii_only)
    notes = json_text(report.notes, ascii_only=ascii_only)
    yield f'\n],\n"summary": {summary},\n"notes": {notes}}}\n'


def json_lines(report: Report, *, ascii_only: bool) -> Iterator[str]:
    """Yield one JSON object a line (NDJSON)."""
    for item in report.items:
        yield _item(report, item, ascii_only) + "\n"


def _item(report: Report, item: Item, ascii_only: bool) -> str:
    fields = {field: item[field] for field in report.fields}
    return json_text(fields, ascii_only=ascii_only)


def separated(report: Report, header: bool, separator: str) -> Iterator[str]:
    """Yield CSV as RFC 4180 has it, but with newline line ends; TSV likewise, with tabs."""
    if header:
        yield _row(report.fields, separator)
    for item in report.items:
        yield _row([raw_cell(item[key]) for key in report.fields], separator)


def _row(cells: Sequence[str], separator: str) -> str:
    if list(cells) == [""]:
        return '""\n'  # an empty line would be no row at all
    return separator.join(quoted(cell, separator) for cell in cells) + "\n"
