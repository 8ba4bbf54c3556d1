"""Where bytes come from: a file, or stdin kept in an unnamed temporary file, to be read again."""

import os
import shutil
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
    """Return what FILE names. Raises InputError for a file that can't be read or is a folder."""
    if file == "-":
        return _stdin()
    path = Path(file)
    if path.is_dir():
        raise InputError(f"{path}: is a folder", f"give the files in it: {path}/*.npz")
    source = Source(str(path), path.suffix.lower(), lambda: path.open("rb"))
    if not source.head(1):
        raise InputError(f"{path}: is empty", "copy or save it again")
    return source


def _hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "ask its owner for permission to read it"
    return "check the path of the file"


def _stdin() -> Source:
    """Return stdin, copied to disk: a zip's directory stands at its end, and names need a pass.

    The descriptor of the copy stays open until the process ends, and the disk is freed then.
    """
    if sys.stdin is None:
        raise InputError("stdin: is closed", "pipe a file into it, or name one")
    try:
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            descriptor = os.dup(copy.fileno())
    except OSError as error:
        message = f"stdin: can't be kept in a temporary file: {error.strerror}"
        raise UnavailableError(message, "save it to a file and name that") from error

    def reopen() -> BinaryIO:
        stream = os.fdopen(os.dup(descriptor), "rb")
        stream.seek(0)
        return stream

    source = Source("stdin", "", reopen)
    if not source.head(1):
        raise InputError("stdin: is empty", "pipe predictions into it, or name a file")
    return source
