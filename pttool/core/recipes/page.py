"""One recipe as a page that is a Python program: the words are comments, the code runs."""

import textwrap
from collections.abc import Iterator

from pttool.core.recipes.book import Recipe

WIDTH = 88


def page(recipe: Recipe) -> str:
    """Return the page: title, fault, answers, code."""
    header = "".join(f"# {line}".rstrip() + "\n" for line in _header(recipe))
    return f"{header}\n{recipe.code}"


def _header(recipe: Recipe) -> Iterator[str]:
    yield f"{recipe.number}. {recipe.title[0].upper()}{recipe.title[1:]}"
    yield ""
    if recipe.fault is not None:
        yield from _wrapped("Common copy:", recipe.fault)
    for command in recipe.commands:
        yield f"Command:     {command}"
    for title, names in (("Function:", recipe.imports), ("Library:", recipe.library)):
        if names:
            yield from _wrapped(title, ", ".join(names))


def _wrapped(title: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{title:<13}",
        subsequent_indent=" " * 13,
        break_on_hyphens=False,
    )
