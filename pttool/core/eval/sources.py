"""Where bytes come from: a file, or a copy of a stream, to be read again."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from pttool.errors import InputError, UnavailableError

FileArgument = Path | Literal["-"]


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
            raise InputError(f"{self.name}: {error.strerror}", _hint(error)) from error


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
            raise InputError(f"{path}: {error.strerror}", _hint(error)) from error
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


def _hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "ask its owner for permission to read it"
    return "check the path of the file"


def _copied(name: str, suffix: str, stream: BinaryIO) -> Source:
    """Return a stream, copied to disk: a zip's directory stands at its end, and names need a pass.

    The descriptor of the copy stays open until the process ends, and the disk is freed then.
    """
    try:
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(stream, copy)
            copy.flush()
            descriptor = os.dup(copy.fileno())
    except OSError as error:
        message = f"{name}: can't be kept in a temporary file: {error.strerror}"
        raise UnavailableError(message, "save it to a file and name that") from error

    def reopen() -> BinaryIO:
        stream = os.fdopen(os.dup(descriptor), "rb")
        stream.seek(0)
        return stream

    source = Source(name, suffix, reopen)
    if not source.head(1):
        raise InputError(f"{name}: is empty", "pipe predictions into it, or name a file")
    return source
