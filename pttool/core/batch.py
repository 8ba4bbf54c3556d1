"""Do the same to many files, of which a bad one doesn't stop the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from pttool.errors import InputError, PttoolError, UnavailableError

T = TypeVar("T")


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
    """Return what `work` gives for each path, by the path's name.

    With one path, what goes wrong is raised at once.
    """
    results: list[tuple[str, T]] = []
    errors: list[PttoolError] = []
    for path in paths:
        try:
            results.append((str(path), work(path)))
        except (InputError, UnavailableError) as error:
            errors.append(error)
        except OSError as error:  # as of a file that goes while it is read
            said = f"{path}: {error.strerror or error}"
            errors.append(InputError(said, "check that it is there, and stays there"))
    if len(paths) == 1 and errors:
        raise errors[0]
    if len(errors) < 2:
        return Done(tuple(results), (), *errors)
    return Done(
        tuple(results),
        tuple(error.message for error in errors),
        type(errors[0])(f"{len(errors)} of {len(paths)} files can't be read", "the notes say why"),
    )
