"""The command tree in plain words: what a shell has to know, free of Typer and of any shell."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from typer import Typer
from typer.main import get_command


class Kind(Enum):
    """What a shell offers for a value."""

    NOTHING = "nothing"
    CHOICE = "choice"
    MODEL = "model"
    FILE = "file"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Value:
    """What an option or an argument takes."""

    name: str
    kind: Kind
    choices: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """What the scripts that describe commands in data write for it: the choices, or @kind."""
        return ",".join(self.choices) if self.kind is Kind.CHOICE else f"@{self.kind.value}"


@dataclass(frozen=True, slots=True)
class Option:
    """An option by all its names; a flag takes no value."""

    names: tuple[str, ...]
    help: str
    value: Value | None = None
    repeatable: bool = False

    @property
    def codes(self) -> list[str]:
        """Each of its names, with =CODE where it takes a value."""
        taken = "" if self.value is None else f"={self.value.code}"
        return [name + taken for name in self.names]


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument; a variadic one takes every word that is left."""

    value: Value
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """The program, a noun or a verb, with what can follow it.

    One with commands may have arguments too, for a first word that is none of them.
    """

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...] = ()
    arguments: tuple[Argument, ...] = ()
    commands: tuple["Command", ...] = ()

    @property
    def name(self) -> str:
        """The word that calls it."""
        return self.path[-1]

    @property
    def line(self) -> str:
        """All words that lead to it."""
        return " ".join(self.path)

    def walk(self) -> Iterator["Command"]:
        """Yield this command and all below it, each before its own."""
        yield self
        for command in self.commands:
            yield from command.walk()


def command_tree(app: Typer) -> Command:
    """Return the tree of an application whose nouns are all loaded; hidden parts are left out."""
    return _command(get_command(app), ("pttool",))


def _command(command: Any, path: tuple[str, ...]) -> Command:
    shown = [part for part in command.params if not getattr(part, "hidden", False)]
    return Command(
        path,
        _first_sentence(command.help),
        (
            *(_option(part) for part in shown if part.param_type_name == "option"),
            _help_option(command),
        ),
        tuple(
            Argument(_value(part), variadic=part.nargs == -1)
            for part in shown
            if part.param_type_name == "argument"
            for _ in range(abs(part.nargs))
        ),
        tuple(
            _command(below, (*path, name))
            for name, below in getattr(command, "commands", {}).items()
            if not below.hidden
        ),
    )


def _option(option: Any) -> Option:
    names, help = (*option.opts, *option.secondary_opts), _first_sentence(option.help)
    if option.is_flag or option.count:
        return Option(names, help, repeatable=option.count)
    if option.nargs != 1:
        raise ValueError(f"{names[-1]}: an option of {option.nargs} values can't be completed")
    return Option(names, help, _value(option), repeatable=option.multiple)


def _help_option(command: Any) -> Option:
    return Option(tuple(command.context_settings["help_option_names"]), "Show the help and exit")


def _value(parameter: Any) -> Value:
    name = parameter.metavar or parameter.name.upper()
    choices = getattr(parameter.type, "choices", None)
    if choices:
        words = tuple(str(getattr(choice, "value", choice)) for choice in choices)
        return Value(name, Kind.CHOICE, words)
    # FILE, FILES, FILE... and [FILE]... all mean files.
    noun = re.sub(r"\W|S\W*$", "", name) if re.fullmatch(r"\W*[A-Z]+\W*", name) else name
    return Value(name, _METAVARS.get(noun) or _TYPES.get(parameter.type.name, Kind.NOTHING))


_METAVARS = {
    "MODEL": Kind.MODEL,
    "FILE": Kind.FILE,
    "SCRIPT": Kind.FILE,
    "ARG": Kind.FILE,
    "DIR": Kind.FOLDER,
    "FOLDER": Kind.FOLDER,
}
# Click's own names for its types of paths.
_TYPES = {
    "path": Kind.FILE,
    "file": Kind.FILE,
    "filename": Kind.FILE,
    "directory": Kind.FOLDER,
}


def _first_sentence(help: str | None) -> str:
    paragraph = " ".join((help or "").partition("\n\n")[0].split())
    return re.split(r"\.(?= [A-Z]|$)", paragraph)[0]
