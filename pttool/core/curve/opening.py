"""Which kind of log a file or folder is, and what it is if it is none."""

import json
import sys
from pathlib import Path

from pttool.core.curve.events import event_folders, is_event_file, read_events
from pttool.core.curve.logs import Log, is_number
from pttool.core.curve.records import read_document, read_lines
from pttool.core.curve.tables import read_table, separator_of
from pttool.errors import InputError

STDIN = Path("-")
TABLES = (".csv", ".tsv")
HINT = "give CSV, TSV, JSON lines, or TensorBoard's event files and folders"


def runs_at(path: Path) -> list[Path]:
    """Return the runs in and below a folder, or what is no folder.

    Raises InputError for a folder without event files.
    """
    if not path.is_dir():
        return [path]
    folders = event_folders(path)
    if not folders:
        raise InputError(f"{path}: holds no event files of TensorBoard", "name the logs in it")
    return folders


def open_log(path: Path) -> Log:
    """Return the run of a file, of a folder that holds event files, or of standard input.

    Raises InputError for what can't be read or is no log, UnavailableError for event files without
    tensorboard.
    """
    if path.is_dir() or (is_event_file(path) and path.exists()):
        return read_events(str(path), path)
    name = "standard input" if path == STDIN else str(path)
    return _checked(_read(name, _text(path, name), path.suffix.lower()))


def _text(path: Path, name: str) -> str:
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError(f"{name}: is a terminal or closed", "pttool curve - < LOG")
        content = sys.stdin.buffer.read()
    else:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{name}: {error.strerror}", "check the path of the log") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is no UTF-8 text", HINT) from error
    if "\0" in text:
        raise InputError(f"{name}: is no text", HINT)
    if not text.strip():
        raise InputError(f"{name}: is empty", "has the run written anything yet?")
    return text.replace("\r\n", "\n")


def _read(name: str, text: str, suffix: str) -> Log:
    first = text.lstrip()[:1]
    if first in ("{", "["):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return read_lines(name, text)  # which says what is wrong with which line
        # A log of one line is a document too.
        is_line = isinstance(document, dict) and "\n" not in text.strip()
        return read_lines(name, text) if is_line else read_document(name, document)
    if suffix not in TABLES and not _looks_like_a_table(text):
        raise InputError(f"{name}: is a text log, from which no numbers can be read", HINT)
    return read_table(name, text)


def _looks_like_a_table(text: str) -> bool:
    """Whether the second line has numbers, in as many cells as the first, of names or numbers."""
    lines = [line for line in text.split("\n", 50)[:50] if line.strip()][:2]
    separator = separator_of(lines[0])
    if len(lines) < 2 or separator is None:
        return False
    header, row = (line.split(separator) for line in lines)
    kinds = {is_number(cell) for cell in header}
    return len(header) == len(row) and len(kinds) == 1 and any(map(is_number, row))


def _checked(log: Log) -> Log:
    if not log.rows:
        raise InputError(f"{log.name}: has a header but no rows", "has the run written any yet?")
    if not log.columns:
        raise InputError(f"{log.name}: holds no numbers", HINT)
    return log
