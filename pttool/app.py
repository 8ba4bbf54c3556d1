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


class RunningNoun(Noun):
    """A noun that itself runs a command: a first word that is no verb is its own argument.

    Verbs don't take the noun's options, so only the very first word can be one.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        below = self.commands.get(args[0]) if args else None
        if below is None:
            return super().make_context(info_name, args, parent, **extra)
        return below.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return super().collect_usage_pieces(ctx)[:-1]  # the last one asks for a verb


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
        text, epilog = _help_of(function)
        app.command(
            name,
            help=text,
            epilog=epilog,
            short_help=text.partition(".\n")[0].rstrip("."),
            context_settings={**CONTEXT, "allow_interspersed_args": not runs_a_command},
        )(_expand_groups(function))
        return function

    return register


def running_noun(function: Command) -> Typer:
    """Return the application of a noun that runs a command by itself, and may have verbs besides.

    Its help is the function's, as for a verb. Options behind the first word are the command's.
    """
    text, epilog = _help_of(function)
    app = noun(text, RunningNoun)
    app.callback(invoke_without_command=True, help=text, epilog=epilog)(_expand_groups(function))
    return app


def _help_of(function: Command) -> tuple[str, str]:
    text, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples:\n")
    return text, f"\b\nExamples:\n{examples}"


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
