"""The same work on many checkpoints, and "-" read as a file.

`each`, and the verbs that name both of their files, resolve "-" themselves; for the others the
command does, with `readable`.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pttool.core import batch
from pttool.core.batch import Done
from pttool.core.ckpt.files.journal import journal_path
from pttool.core.ckpt.files.watching import changing, version
from pttool.errors import InputError, UnavailableError

T = TypeVar("T")
STDIN = Path("-")


def each(paths: Sequence[Path], work: Callable[[Path], T]) -> Done[T]:
    """Return what `work` gives for each path, "-" being standard input, by the path's name.

    With one path, what goes wrong is raised at once.
    """
    said: list[str] = []

    def on_readable(path: Path) -> T:
        with readable(path, say=said.append) as file:
            return work(file)

    done = batch.each(paths, on_readable)
    return replace(done, notes=(*said, *done.notes))


@contextlib.contextmanager
def readable(
    path: Path, *, may_change: bool = False, say: Callable[[str], object] = lambda note: None
) -> Iterator[Path]:
    """Yield a path that can be read anywhere in it; of a pipe, a copy's.

    What an interrupted change in place left of a file is undone first, which `say` is told. Raises
    InputError for a terminal, UnavailableError where there is no room for the copy, and for a file
    that another process changes meanwhile, unless it `may_change`.
    """
    if path == STDIN and (sys.stdin is None or sys.stdin.isatty()):
        what = "is closed" if sys.stdin is None else "is a terminal, not a file"
        raise InputError(f"standard input: {what}", "pttool ckpt ... - < FILE")
    real = Path("/dev/stdin") if path == STDIN else path
    if stat.S_ISFIFO(_mode(real)):
        with _copied(real, "standard input" if path == STDIN else str(path)) as copy:
            yield copy
        return
    if path != STDIN:
        _undo_interrupted(path, say)
    before = version(real)
    try:
        yield real
    except InputError:
        if version(real) != before:
            raise changing(path) from None
        raise
    if not may_change and version(real) != before:
        raise changing(path)


def _undo_interrupted(path: Path, say: Callable[[str], object]) -> None:
    real = Path(os.path.realpath(path))
    if stat.S_ISREG(_mode(real)) and os.path.lexists(journal_path(real)):
        from pttool.core.ckpt.files.patching import recover

        if recover(path):
            say(f"{path}: a change in place had been cut short: it is undone")


@contextlib.contextmanager
def _copied(pipe: Path, name: str) -> Iterator[Path]:
    """Yield the path of a file without a name that holds what comes out of a pipe."""
    import tempfile

    with contextlib.ExitStack() as stack:
        try:
            copy = stack.enter_context(tempfile.TemporaryFile(prefix="pttool-"))
            with pipe.open("rb") as stream:
                while block := stream.read(1 << 20):
                    copy.write(block)
            copy.flush()
        except OSError as error:
            said = f"{name}: {error.strerror}, copying it to {tempfile.gettempdir()}"
            raise UnavailableError(said, "make room, or set TMPDIR to where there is") from error
        path = Path(f"/dev/fd/{copy.fileno()}")
        try:
            yield path
        except InputError as error:
            raise InputError(error.message.replace(str(path), name), error.hint) from error


def _mode(path: Path) -> int:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):  # said by what opens it
        return 0
