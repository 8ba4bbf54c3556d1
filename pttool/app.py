"""How a noun and its verbs are declared, so that every command looks and behaves alike."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, get_type_hints

from typer import Typer
from typer.core import TyperGroup

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(Protocol):
    """A function that is a command; its docstring is the command's help."""

    __name__: str

    def __call__(self, *args: Any, **kwargs: Any) -> None: ...


class Noun(TyperGroup):
    """A group that shows its help when no verb is given, and leaves "did you mean" to cli.py."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self.suggest_commands = False
        return super().parse_args(ctx, args or ["--help"])


def noun(help: str, group: type[TyperGroup] = Noun) -> Typer:
    """Return the application of one noun. Its callback keeps a noun with one verb a group."""
    app = Typer(
        cls=group,
        help=help,
        subcommand_metavar="VERB ...",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    app.callback(help=help)(lambda: None)
    return app


def verb(app: Typer, *, runs_a_command: bool = False) -> Callable[[Command], Command]:
    """Make a function a command of its noun: named as it is, documented by its docstring.

    The help ends in the docstring's examples, whose lines the \\b keeps from being filled.

    A verb that runs a command takes no options behind its first word: they are the command's.

    A parameter whose type is a dataclass stands for the options that the fields of the dataclass
    declare, so that commands share groups of options.
    """

    def register(function: Command) -> Command:
        name = function.__name__.replace("_", "-")
        text, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples:\n")
        app.command(
            name,
            help=text,
            epilog=f"\b\nExamples:\n{examples}",
            short_help=text.partition(".\n")[0].rstrip("."),
            context_settings={**CONTEXT, "allow_interspersed_args": not runs_a_command},
        )(_expand_groups(function))
        return function

    return register


def _expand_groups(function: Command) -> Callable[..., None]:
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def command(**values: Any) -> None:
        for name, make in groups.items():
            values[name] = make(**{field.name: values.pop(field.name) for field in fields(make)})
        function(**values)

    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _options_of(groups[name])
        else:
            hinted = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            parameters.append(hinted)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
