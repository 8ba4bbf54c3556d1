"""JSON logs: an object a line, or one document that holds a list of objects."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pttool.core.curve.logs import Log
from pttool.errors import InputError

HINT = 'one JSON object a line, as in {"step": 1, "loss": 0.5}'


def read_lines(name: str, text: str) -> Log:
    """Return the columns of JSON lines; what lies in objects is named by dots, `train.loss`.

    NaN and Infinity are numbers, as Python's json writes them. A last line that is cut short is
    left out, and so are torn lines, as a crash leaves them. Raises InputError for a line of JSON
    that is no object, and where no line is one.
    """
    log = Log(name)
    torn: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # no new line at its end: it is still being written
                log.notes.append(f"{name}: the last line is cut short, and left out")
                break
            torn.append(f"line {number} is no JSON: {_reason(error)}")
            continue
        if not isinstance(row, dict):
            raise InputError(f"{name}: {[*torn, f'line {number} is no JSON object'][0]}", HINT)
        log.add_row(dict(_flat(row)), f"line {number}")
    if torn and not log.rows:
        raise InputError(f"{name}: {torn[0]}", HINT)
    if torn:
        log.notes.append(f"{name}: {len(torn)} lines are left out: {torn[0]}")
    return log


def read_document(name: str, document: Any) -> Log:
    """Return the columns of a list of objects, or of the only one that an object holds.

    The latter is how Transformers writes `log_history` in trainer_state.json. Raises InputError for
    any other document.
    """
    rows = document
    if isinstance(document, dict):
        lists = [value for value in document.values() if _is_list_of_objects(value)]
        rows = lists[0] if len(lists) == 1 else None
    if not _is_list_of_objects(rows):
        raise InputError(f"{name}: is JSON, but no list of objects", HINT)
    log = Log(name)
    for number, row in enumerate(rows, 1):
        log.add_row(dict(_flat(row)), f"object {number}")
    return log


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return (
        "it is nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
    )
