"""Find every pickle in a file: its own, those in its records, and in files inside of it."""

import contextlib
import mmap
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pttool.core.ckpt.containers.numpy_files import LARGEST_HEADER
from pttool.core.ckpt.files.payload import blocks, opened, read_at
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.formats.signatures import NPY_MAGIC, ZIP_HEADS
from pttool.core.ckpt.formats.tar_directory import members_of
from pttool.core.ckpt.pickles.budget import MAX_OPCODES
from pttool.core.ckpt.pickles.nodes import Call, Node, Span
from pttool.core.ckpt.pickles.spans import bytes_of, pieces
from pttool.core.ckpt.pickles.walker import Buffer
from pttool.core.ckpt.safety.audits import Auditor, Findings, counts_as_pickle
from pttool.core.ckpt.types import Record
from pttool.core.ckpt.zips.consistency import consistency
from pttool.core.ckpt.zips.directory import read_directory
from pttool.errors import InputError, PttoolError, UnavailableError

PICKLE_SUFFIXES = (".pkl", ".pickle", ".metadata")
# With these a pickle can begin: they need nothing on the stack.
STARTERS = frozenset(
    b"(NIJKMLFGSTUVXBC]})cP\x80\x82\x83\x84\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x95\x96"
)
LEGACY_PICKLES = 5
DEEPEST = 3
LARGEST_INFLATED = 1 << 25
LARGEST_NESTED = 1 << 30
HEAD_BYTES = 12


@dataclass(slots=True)
class Budget:
    """What may still be spent on a file, and how much was found in it that is worth a verdict."""

    opcodes: int = MAX_OPCODES
    nested_bytes: int = LARGEST_NESTED
    found: int = 0


@dataclass(slots=True, frozen=True)
class Search:
    """Looks through one file, and through files inside of it, which are so much deeper."""

    findings: Findings
    budget: Budget = field(default_factory=Budget)
    depth: int = 0

    def archive(self, path: Path, where: str = "") -> None:
        """Look through a zip. Raises InputError for one whose directory is broken."""
        directory = read_directory(path)
        place = f" (in {where})" if where else ""
        for reason in (*directory.warnings, *consistency(directory)):
            self.findings.doubt(f"{reason}{place}")
        for entry in directory.entries:
            try:
                record = directory.record(entry)
            except InputError as error:
                self.findings.doubt(said(error, path, where))
                continue
            self.record(record, f"{where}: {quoted(entry.name)}" if where else quoted(entry.name))

    def record(self, record: Record, where: str, *, expected: int = 0) -> None:
        """Look into a run of bytes, of which so many pickles are expected, one by its name."""
        name = record.name.lower()  # as torch looks records up
        expected = expected or int(name.endswith(PICKLE_SUFFIXES))
        if name.endswith(".py"):
            self.findings.doubt("contains Python code, which isn't judged")
        if self.budget.opcodes <= 0:
            self.findings.doubt("it holds more pickles than can be looked through")
            return
        try:
            head = b"".join(blocks(record, stop=min(HEAD_BYTES, record.size_bytes)))
            if head.startswith(ZIP_HEADS):
                self._nested(blocks(record), record.size_bytes, where)
            elif head.startswith(NPY_MAGIC):
                self._array(record, where)
            elif expected or (head and head[0] in STARTERS):
                with buffer_of(record) as (buffer, start):
                    self.pickles(buffer, start, where, expected)
        except InputError as error:
            self.findings.doubt(said(error, record.file, where))

    def pickles(self, buffer: Buffer, start: int, where: str, expected: int) -> None:
        """Judge the pickles from `start` on, of which only the expected ones must be any."""
        position, count = start, 0
        while position < len(buffer) or count < expected:
            end = self._judged(buffer, position, where, is_expected=count < expected)
            if end is None:
                return
            position, count = end, count + 1
            if count > max(expected, 1):
                self.findings.doubt(f"more than one pickle, in {where}")
            if count == expected == 1 and end < len(buffer):
                left = len(buffer) - end
                self.findings.doubt(f"{left:,} bytes follow the pickle's end, in {where}")

    def _judged(self, buffer: Buffer, start: int, where: str, *, is_expected: bool) -> int | None:
        """Judge one pickle and return where it ends; None for a broken one, or none at all.

        A broken one may have been run up to there.
        """
        walker = Auditor(buffer, start, where)
        walker.most_opcodes = max(self.budget.opcodes, 1)
        broken = None
        try:
            walker.walk()
        except InputError as error:
            broken = error.message
        self.budget.opcodes -= walker.opcodes
        if not is_expected and not counts_as_pickle(walker, is_whole=broken is None):
            self.findings.judge_dangers(walker.globals, where)
            return None
        self.budget.found += 1
        self.findings.audit(walker, where)
        for content in dict.fromkeys(map(_written, walker.loaded)):
            self._loaded(buffer, content, f"bytes to load in {where}")
        if broken:
            self.findings.doubt(broken)
        return None if broken else walker.position

    def _loaded(self, buffer: Buffer, content: bytes | Span | None, where: str) -> None:
        """Look into the bytes that a pickle has torch load as a file."""
        if self.depth >= DEEPEST:
            self.findings.doubt(f"nested too deep to look into: {where}")
            return
        start, stop = 0, 0
        if isinstance(content, Span) and content.encoding is not None:
            text = pieces(
                buffer, content.start, min(content.stop, content.start + LARGEST_INFLATED)
            )
            buffer = b"".join(bytes_of(text, content.encoding))
        elif isinstance(content, Span):
            start, stop = content.start, content.stop
        elif isinstance(content, bytes):
            buffer = content
        else:
            self.findings.doubt(f"computed, not written out: {where}")
            return
        stop = stop or len(buffer)
        if buffer[start : start + 4] in ZIP_HEADS:
            self._nested(pieces(buffer, start, stop), stop - start, where)
        else:
            replace(self, depth=self.depth + 1).pickles(buffer, start, where, LEGACY_PICKLES)

    def _array(self, record: Record, where: str) -> None:
        """Look behind the header of an array of numpy: objects are a pickle."""
        head = b"".join(blocks(record, stop=min(LARGEST_HEADER, record.size_bytes)))
        first = 10 if head[6:7] == b"\1" else 12
        start = first + int.from_bytes(head[8:first], "little")
        if re.search(rb"O['\"]", head[first:start]):
            with buffer_of(record) as (buffer, origin):
                self.pickles(buffer, origin + start, where, 1)

    def _nested(self, content: Iterable[bytes], size: int, where: str) -> None:
        """Look through a zip inside of a file, in a copy of so many bytes."""
        if self.depth >= DEEPEST or size > self.budget.nested_bytes:
            self.budget.found += 1
            what = "deep" if self.depth >= DEEPEST else "large"
            self.findings.doubt(f"a zip too {what} to look into, in {where}")
            return
        self.budget.nested_bytes -= size
        with copied(content) as copy:
            try:
                replace(self, depth=self.depth + 1).archive(copy, where)
            except InputError as error:
                self.findings.doubt(said(error, copy, where))

    def members(self, path: Path) -> None:
        """Look into the members of a tar, each of which begins with a pickle in torch's."""
        with opened(path) as file:
            for member in members_of(file, path):
                self.record(member, quoted(member.name))


@contextlib.contextmanager
def buffer_of(record: Record) -> Iterator[tuple[Buffer, int]]:
    """Yield a record's bytes and where they begin: mapped, or the first of those inflated."""
    if record.is_deflated:
        yield b"".join(blocks(record, stop=min(record.size_bytes, LARGEST_INFLATED))), 0
        return
    skipped = record.offset % mmap.ALLOCATIONGRANULARITY
    with opened(record.file) as file:
        length = min(record.stored_bytes, os.fstat(file).st_size - record.offset) + skipped
        if length <= skipped:
            yield b"", 0
            return
        with mmap.mmap(file, length, access=mmap.ACCESS_READ, offset=record.offset - skipped) as m:
            yield m, skipped


@contextlib.contextmanager
def copied(content: Iterable[bytes]) -> Iterator[Path]:
    """Yield a temporary file of these bytes. Raises UnavailableError where none can be written."""
    try:
        with tempfile.NamedTemporaryFile(prefix="pttool-") as copy:
            for block in content:
                copy.write(block)
            copy.flush()
            yield Path(copy.name)
    except OSError as error:
        what = f"a zip inside of a file can't be copied, to look into it: {error.strerror}"
        raise UnavailableError(what, "set TMPDIR to a folder with enough room") from error


def _written(content: Node) -> bytes | Span | None:
    """Return bytes to load, as they are written in the pickle, or None for computed ones.

    Protocols below 3 have a text and a call that makes bytes of it.
    """
    if isinstance(content, Call) and content.path == "_codecs.encode" and content.args:
        content = content.args[0]
    return content if isinstance(content, (bytes, Span)) else None


def has_zip_end(path: Path) -> bool:
    """Whether a zip lies in a file that doesn't begin as one: some readers look at the end."""
    with opened(path) as file:
        if read_at(file, 0, 4, path).startswith(ZIP_HEADS):
            return False
    try:
        return bool(read_directory(path).entries)
    except InputError:
        return False


def said(error: PttoolError, path: Path, where: str = "") -> str:
    """Return an error without the path of the file, or of a copy that no one knows."""
    reason = error.message.removeprefix(f"{path}: ")
    return f"{reason} (in {where})" if where else reason
