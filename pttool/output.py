"""Write a Report: the only place that touches standard output."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from pttool.core.files import check_writable, written
from pttool.core.report import Report
from pttool.data_formats import json_document, json_lines, separated
from pttool.errors import UnavailableError, UsageError
from pttool.tables import Paper, table
from pttool.values import printable

BLOCK_CHARACTERS = 1 << 16
UNKNOWN_WIDTH = 100  # of what is no terminal


class Format(StrEnum):
    """How a report is written. The last three are documents, which only some commands have."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    TSV = "tsv"
    MD = "md"
    LATEX = "latex"
    HTML = "html"


SUFFIXES = {
    ".json": Format.JSON,
    ".ndjson": Format.NDJSON,
    ".jsonl": Format.NDJSON,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".txt": Format.TABLE,
}


DOCUMENTS = (Format.CSV, Format.MD, Format.LATEX, Format.HTML)
DOCUMENT_SUFFIXES = {
    ".md": Format.MD,
    ".tex": Format.LATEX,
    ".html": Format.HTML,
    ".htm": Format.HTML,
}


@dataclass(frozen=True, slots=True)
class Output:
    """How a report is written, and where: a path, or else standard output."""

    format: Format = Format.TABLE
    header: bool = True
    path: Path | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is a table, in a terminal or piped."""
        return self.format is Format.TABLE

    @property
    def is_for_people(self) -> bool:
        """Whether it is a table in a terminal."""
        return self.is_table and self.path is None and _stdout.is_terminal


class _Stdout:
    """The real standard output, which code that isn't ours can't reach once it is kept."""

    def __init__(self) -> None:
        self.is_closed = sys.stdout is None
        self.encoding = "utf-8" if self.is_closed else sys.stdout.encoding
        self.descriptor = 1

    @property
    def is_terminal(self) -> bool:
        """Whether people read it."""
        return not self.is_closed and os.isatty(self.descriptor)

    def keep(self) -> None:
        """Move it to another descriptor, and point 1 and what Python prints at stderr."""
        if self.descriptor == 1 and not self.is_closed:
            sys.stdout.flush()
            self.descriptor = os.dup(1)
            os.dup2(2, 1)

    def write(self, payload: bytes) -> None:
        """Write every byte."""
        rest = memoryview(payload)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]


_stdout = _Stdout()
keep_stdout = _stdout.keep


def choose_output(
    formats: Sequence[Format],
    *,
    header: bool,
    path: Path | None,
    force: bool,
    suffixes: Mapping[str, Format] = SUFFIXES,
    inputs: Iterable[Path] = (),
) -> Output:
    """Return the one output asked for, before any work is done.

    Raises UsageError for two formats at once, a suffix that names no format, a format without a
    header to leave out, and a path that can't be written.
    """
    asked = dict.fromkeys(formats)
    if path is not None and str(path) in ("-", "/dev/stdout"):
        path = None
    if path is not None and path.is_dir():
        raise UsageError(f"{path}: is a folder", "give a file name to write to")
    if path is not None:
        by_suffix = suffixes.get(path.suffix.lower())
        if by_suffix is not None:
            asked[by_suffix] = None
        elif not asked:
            raise UsageError(
                f"{path}: the suffix names no format",
                f"end it in {' '.join(suffixes)}, or give --json, --ndjson, --csv or --tsv",
            )
        check_writable(path, force=force, inputs=inputs)
    if len(asked) > 1:
        raise UsageError(f"two formats at once: {' and '.join(asked)}", "give one of them")
    chosen = next(iter(asked), Format.TABLE)
    if not header and chosen in (Format.JSON, Format.NDJSON):
        raise UsageError(f"{chosen} has no header", "--no-header goes with a table, CSV or TSV")
    return Output(chosen, header, path)


def emit(command: str, report: Report, output: Output) -> None:
    """Write the report, its notes on stderr, and raise the failure that it carries."""
    try:
        if output.path is not None:
            save(command, report, output, output.path)
        else:
            _write_stdout(command, report, output)
    except BrokenPipeError:  # the reader has enough, but a check that fails still fails
        if report.failure is None:
            raise
    _finish(report)


def save(command: str, report: Report, output: Output, path: Path) -> None:
    """Write the report to a file, and nothing on stderr."""
    texts = _rendered(command, report, output, Paper("utf-8"))
    _to_file((_encoded(text, "utf-8") for text in texts), path)


def _finish(report: Report) -> None:
    for text in report.notes:
        note(text)
    if report.failure is not None:
        raise report.failure


def choose_text_output(
    path: Path | None, suffixes: Sequence[str], *, force: bool, inputs: Iterable[Path] = ()
) -> Path | None:
    """Check, before any work is done, where a text that is no report goes.

    Raises UsageError for a suffix that is none of `suffixes`, and a path that can't be written or
    is one of the inputs.
    """
    if path is not None:
        if path.suffix.lower() not in suffixes:
            raise UsageError(
                f"{path}: the suffix names no format", f"end it in {' or '.join(suffixes)}"
            )
        check_writable(path, force=force, inputs=inputs)
    return path


def emit_text(text: str | bytes, path: Path | None) -> None:
    """Write a text that is no report, as a graph is, to a path or else to standard output."""
    payload = text if isinstance(text, bytes) else _encoded(text, "utf-8")
    if path is None:
        _to_stdout([payload])
    else:
        _to_file([payload], path)


def emit_document(texts: Iterable[str], report: Report, output: Output) -> None:
    """Write a report that a command has put into words itself; notes and failure as in `emit`."""
    try:
        if output.path is not None:
            _to_file((_encoded(text, "utf-8") for text in texts), output.path)
        else:
            _to_stdout(_encoded(block, "utf-8") for block in _blocks(texts))
    except BrokenPipeError:
        if report.failure is None:
            raise
    _finish(report)


def talk(line: str) -> None:
    """Write one line on stderr, in whatever encoding it has."""
    if sys.stderr is not None:
        encoding = sys.stderr.encoding or "utf-8"
        with contextlib.suppress(OSError):  # nobody listens: no reason to stop
            sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            sys.stderr.flush()


def talk_table(report: Report) -> None:
    """Write a table on stderr, always for people: what a program reads is data."""
    if sys.stderr is not None:
        paper = Paper.of_descriptor(2, sys.stderr.encoding or "utf-8")
        shown = table(report, True, paper if paper.width else replace(paper, width=UNKNOWN_WIDTH))
        talk("".join(shown).rstrip("\n"))


def note(text: str) -> None:
    """Write a note on stderr."""
    talk(f"pttool: note: {printable(text)}")


def _write_stdout(command: str, report: Report, output: Output) -> None:
    paper = Paper.of_descriptor(_stdout.descriptor, _stdout.encoding)
    encoding = paper.encoding if output.format is Format.TABLE else "utf-8"
    blocks = _blocks(_rendered(command, report, output, paper))
    _to_stdout(_encoded(block, encoding) for block in blocks)


def _to_file(payloads: Iterable[bytes], path: Path) -> None:
    with written(path) as stream:
        stream.writelines(payloads)


def _to_stdout(payloads: Iterable[bytes]) -> None:
    if _stdout.is_closed:
        return
    try:
        for payload in payloads:
            _stdout.write(payload)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnavailableError(f"standard output: {error.strerror}") from error


def _blocks(texts: Iterable[str]) -> Iterator[str]:
    """Join small texts, so that an unbuffered standard output costs few system calls."""
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= BLOCK_CHARACTERS:
            yield "".join(block)
            block, size = [], 0
    yield "".join(block)


def _encoded(text: str, encoding: str) -> bytes:
    """Encode text; the undecodable bytes of a file's name come out as the bytes that they were."""
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace")


def _rendered(command: str, report: Report, output: Output, paper: Paper) -> Iterable[str]:
    match output.format:
        case Format.TABLE:
            return table(report, output.header, paper)
        case Format.JSON:
            return json_document(command, report, ascii_only=paper.is_narrow)
        case Format.NDJSON:
            return json_lines(report, ascii_only=paper.is_narrow)
        case Format.CSV:
            return separated(report, output.header, ",")
        case _:
            return separated(report, output.header, "\t")
