"""`pttool recipes`: the recipes of the PyTorch cookbooks, each made right."""

from typing import Annotated

from typer import Argument

from pttool.options import OutputOptions
from pttool.output import emit, emit_document


def recipes(
    show: Annotated[
        str | None,
        Argument(
            metavar="SHOW",
            help="A number, a name, or any word: the one recipe that it fits, or all that it does.",
            show_default=False,
        ),
    ] = None,
    *,
    output: OutputOptions,
) -> None:
    """List the recipes of the PyTorch cookbooks and what answers each; show one, with its code.

    The answer is a command of pttool, a function to import from pttool.recipes, or torch's own.
    The page of a recipe is a program that runs as it is, with the words as comments.

    Examples:
        pttool recipes
        pttool recipes 36
        pttool recipes mixup > mixup.py
        pttool recipes --json | jq -r '.items[] | select(.kinds == "T").title'
    """
    destination = output.choose()
    from pttool.core.recipes.page import page
    from pttool.core.recipes.recipes import recipes as find

    report, only = find(show)
    if only is not None and destination.is_table:
        emit_document([page(only)], report, destination)
    else:
        emit("recipes", report, destination)
