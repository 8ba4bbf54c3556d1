"""What doctor finds: a cause, and the rows of the table that finds it."""

from collections.abc import Callable
from dataclasses import dataclass

from pttool.core.gpu.diagnosis.facts import Facts

Words = str | Callable[[Facts], str]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause by name, in words, and one way to mend it; None where there is nothing to mend.

    With `usable` CUDA works, a cause or not.
    """

    cause: str | None
    message: str
    fix: str | None
    usable: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the decision table: the cause, when it holds, and what to say and to do."""

    cause: str | None
    holds: Callable[[Facts], bool]
    message: Words
    fix: Words | None
    usable: bool = False

    def diagnosis(self, facts: Facts) -> Diagnosis:
        """Return the row's words for these facts."""
        message = _said(self.message, facts)
        fix = None if self.fix is None else _said(self.fix, facts)
        return Diagnosis(self.cause, message, fix, self.usable)


def _said(words: Words, facts: Facts) -> str:
    return words if isinstance(words, str) else words(facts)
