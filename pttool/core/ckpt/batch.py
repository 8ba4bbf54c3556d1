"""Do the same to many files, of which a bad one doesn't stop the others."""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pttool.core.ckpt.files.journal import journal_path
from pttool.errors import InputError, PttoolError

T = TypeVar("T")
STDIN = Path("-")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What came out for the files that could be read, and what to say of the others.

    `failure` is to be raised once the rest is written.
    """

    results: tuple[tuple[str, T], ...]
    notes: tuple[str, ...] = ()
    failure: PttoolError | None = None


def each(paths: Sequence[Path], work: Callable[[Path], T]) -> Done[T]:
    """Return what `work` gives for each path, "-" being standard input, by the path's name.

    With one path, what goes wrong is raised at once.
    """
    results: list[tuple[str, T]] = []
    errors: list[PttoolError] = []
    for path in paths:
        try:
            with readable(path) as file:
                results.append((str(path), work(file)))
        except InputError as error:
            if len(paths) == 1:
                raise
            errors.append(error)
    if not errors:
        return Done(tuple(results))
    if len(errors) == 1:
        return Done(tuple(results), failure=errors[0])
    return Done(
        tuple(results),
        tuple(error.message for error in errors),
        InputError(f"{len(errors)} of {len(paths)} files can't be read", "the notes say why"),
    )


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """Yield a path that can be read anywhere: of a pipe on standard input, a copy on the disk.

    What an interrupted change in place left of a file is undone first.
    """
    if path != STDIN:
        if os.path.lexists(journal_path(Path(os.path.realpath(path)))):
            from pttool.core.ckpt.files.patching import recover

            recover(path)
        yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("standard input: is a terminal, not a file", "pttool ckpt ... - < FILE")
    if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        yield Path("/dev/stdin")
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pttool-") as folder:
        copy = Path(folder, "stdin")
        with copy.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream, 1 << 20)
        try:
            yield copy
        except InputError as error:
            said = error.message.replace(str(copy), "standard input")
            raise InputError(said, error.hint) from error
