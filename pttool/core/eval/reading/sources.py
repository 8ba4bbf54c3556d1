"""Where bytes come from: a file, or a copy of a stream, to be read again."""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from pttool.errors import InputError, UnavailableError

FileArgument = Path | Literal["-"]
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name for messages, its suffix ("" for stdin), and how to open it from its start."""

    name: str
    suffix: str
    open: Callable[[], BinaryIO]

    def head(self, count: int) -> bytes:
        """Return the first bytes. Raises InputError for a file that can't be read."""
        try:
            with self.open() as stream:
                return stream.read(count)
        except OSError as error:
            raise unreadable(self.name, error) from error


def source_of(file: FileArgument) -> Source:
    """Return what FILE names. Raises InputError for a file that can't be read or is a folder.

    What can be read only once, as a named pipe, is copied like stdin.
    """
    if file == "-":
        if sys.stdin is None:
            raise InputError("stdin: is closed", "pipe a file into it, or name one")
        return _copied("stdin", "", sys.stdin.buffer)
    path = Path(file)
    if path.is_dir():
        raise InputError(f"{path}: is a folder", f"give the files in it: {path}/*.npz")
    if is_stream(path):
        try:
            with path.open("rb") as stream:
                return _copied(str(path), path.suffix.lower(), stream)
        except OSError as error:
            raise unreadable(str(path), error) from error
    source = Source(str(path), path.suffix.lower(), lambda: path.open("rb"))
    if not source.head(1):
        raise InputError(f"{path}: is empty", "copy or save it again")
    return source


def is_stream(file: FileArgument) -> bool:
    """Return whether FILE can be read only once: stdin, a pipe (as `<(...)` is), a terminal.

    Raises InputError for a device that never ends.
    """
    if file == "-":
        return True
    try:
        mode = Path(file).stat().st_mode
    except OSError:  # told when it is opened
        return False
    if not stat.S_ISCHR(mode) or str(file) == os.devnull:
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    with Path(file).open("rb") as device:
        if not device.isatty():
            raise InputError(f"{file}: is a device, not a file", "name a file of predictions")
    return True


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Tell what the system refuses while a file is read, as a disk that fails, by the file."""
    try:
        yield
    except OSError as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: OSError) -> InputError:
    """Return the error of a file that the system can't read."""
    hint = "check the path of the file"
    if isinstance(error, PermissionError):
        hint = "ask its owner for permission to read it"
    return InputError(f"{name}: {error.strerror or error}", hint)


@contextlib.contextmanager
def spooled(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Yield a copy of the rest of a stream, in a temporary file that can be seeked.

    Raises UnavailableError where there is no room for it; what reading raises is passed on.
    """
    with contextlib.ExitStack() as stack:
        with _room(name):
            copy = stack.enter_context(tempfile.TemporaryFile())
        while piece := stream.read(PIECE):
            with _room(name):
                copy.write(piece)
        with _room(name):
            copy.flush()
        yield copy


@contextlib.contextmanager
def _room(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{name}: can't be kept in a temporary file: {error.strerror}"
        hint = "make room, or point TMPDIR at a larger disk"
        raise UnavailableError(message, hint) from error


def _copied(name: str, suffix: str, stream: BinaryIO) -> Source:
    """Return a stream, copied to disk: a zip's directory stands at its end, and names need a pass.

    The descriptor of the copy stays open until the process ends, and the disk is freed then.
    """
    with reading(name), spooled(stream, name) as copy:
        descriptor = os.dup(copy.fileno())

    def reopen() -> BinaryIO:
        stream = os.fdopen(os.dup(descriptor), "rb")
        stream.seek(0)
        return stream

    source = Source(name, suffix, reopen)
    if not source.head(1):
        raise InputError(f"{name}: is empty", "pipe predictions into it, or name a file")
    return source
