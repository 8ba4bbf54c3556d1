"""Do the same to many files, of which a bad one doesn't stop the others; and read "-" as a file.

`each`, and the verbs that name both of their files, resolve "-" themselves; for the others the
command does, with `readable`.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from pttool.core.ckpt.files.journal import journal_path
from pttool.errors import InputError, PttoolError, UnavailableError

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

    def judged(self, check: PttoolError | None) -> "Done[T]":
        """Return it with a check that failed as the failure, and an unreadable file as a note."""
        if check is None:
            return self
        notes = self.notes if self.failure is None else (*self.notes, self.failure.message)
        return replace(self, notes=notes, failure=check)


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
        except (InputError, UnavailableError) as error:
            errors.append(error)
        except OSError as error:  # as of a file that goes while it is read
            said = f"{path}: {error.strerror or error}"
            errors.append(InputError(said, "check that it is there, and stays there"))
    if len(paths) == 1 and errors:
        raise errors[0]
    if not errors:
        return Done(tuple(results))
    if len(errors) == 1:
        return Done(tuple(results), failure=errors[0])
    return Done(
        tuple(results),
        tuple(error.message for error in errors),
        type(errors[0])(f"{len(errors)} of {len(paths)} files can't be read", "the notes say why"),
    )


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """Yield a path that can be read anywhere in it; of a pipe on standard input, a copy's.

    What an interrupted change in place left of a file is undone first. Raises InputError for a
    terminal, UnavailableError where there is no room for the copy.
    """
    if path != STDIN:
        real = Path(os.path.realpath(path))
        if real.is_file() and os.path.lexists(journal_path(real)):
            from pttool.core.ckpt.files.patching import recover

            recover(path)
        yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("standard input: is a terminal, not a file", "pttool ckpt ... - < FILE")
    if not stat.S_ISREG(os.fstat(0).st_mode):
        _copy_stdin()
    yield Path("/dev/stdin")


def _copy_stdin() -> None:
    """Put a file without a name in the place of the pipe on standard input."""
    import shutil
    import tempfile

    try:
        with tempfile.TemporaryFile(prefix="pttool-") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
            copy.flush()
            os.dup2(copy.fileno(), 0)
    except OSError as error:
        said = f"standard input: {error.strerror}, copying it to {tempfile.gettempdir()}"
        raise UnavailableError(said, "make room, or set TMPDIR to where there is") from error
