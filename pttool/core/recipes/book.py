"""Read the book: the data file from which command, README table and tests are made."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BOOK = Path(__file__).parents[2] / "data" / "recipes.toml"
# Noun and verb are words of letters and hyphens; no argument in the book that follows them is.
NOUN_AND_VERB = re.compile(r"^(pttool(?: [a-z][a-z-]*)+)(?: .*)?$")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One recipe: the fault of the common copy, if it has one, and what answers it.

    `commands` are lines of pttool, `functions` names in pttool.recipes, `library` names of
    torch's or another library's; `words` are others to search by; `code` is to be pasted, and runs
    as it is.
    """

    number: int
    name: str
    title: str
    words: str
    fault: str | None
    commands: tuple[str, ...]
    functions: tuple[str, ...]
    library: tuple[str, ...]
    code: str

    @property
    def kinds(self) -> str:
        """The kinds of its answers: C for commands, F for functions, T for torch or a library."""
        answers = {"C": self.commands, "F": self.functions, "T": self.library}
        return " ".join(kind for kind, given in answers.items() if given)

    @property
    def answers(self) -> list[str]:
        """The answers in short: commands without their arguments, functions, a library's."""
        return [*map(without_arguments, self.commands), *self.imports, *self.library]

    @property
    def imports(self) -> list[str]:
        """The functions with the package that they are imported from."""
        return [f"pttool.recipes.{name}" for name in self.functions]


def without_arguments(command: str) -> str:
    """Return the noun and verb of a line of pttool, as `pttool gpu pick`."""
    return NOUN_AND_VERB.sub(r"\1", command)


@cache
def book() -> tuple[Recipe, ...]:
    """Return all recipes, by number."""
    entries = tomllib.loads(BOOK.read_text(encoding="utf-8"))["recipe"]
    return tuple(
        Recipe(
            number=entry["number"],
            name=entry["name"],
            title=entry["title"],
            words=entry.get("words", ""),
            fault=entry.get("fault"),
            commands=tuple(entry.get("commands", ())),
            functions=tuple(entry.get("functions", ())),
            library=tuple(entry.get("library", ())),
            code=entry["code"],
        )
        for entry in entries
    )
