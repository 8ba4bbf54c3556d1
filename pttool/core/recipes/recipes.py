"""`recipes`: list the book, or what of it a word is about."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pttool.core.recipes.book import Recipe, book
from pttool.core.report import Column, Report
from pttool.errors import UsageError

FIELDS = ("number", "name", "title", "fault", "kinds", "commands", "functions", "library", "code")
COLUMNS = (
    Column("number", "No.", "count"),
    Column("name", "Name"),
    Column("title", "Recipe"),
    Column("answers", "Answer", "list", optional=True),
)


def recipes(wanted: str | None = None) -> tuple[Report, Recipe | None]:
    """Return a report of the recipes, and the one that is meant if just one is.

    `wanted` is a number, a name, or a word of names, titles, faults and answers (else of
    their codes), whatever its case; None stands for all. Raises UsageError for what none has, with
    the nearest names.
    """
    found = book() if wanted is None else _found(wanted)
    return _report(found), found[0] if len(found) == 1 else None


def _found(wanted: str) -> Sequence[Recipe]:
    word = wanted.strip().lower()
    exact = [recipe for recipe in book() if word in (str(recipe.number), recipe.name)]
    holding = [recipe for recipe in book() if word and word in _words(recipe)] or [
        recipe for recipe in book() if word and word in recipe.code.lower()
    ]
    found = exact or ([] if _is_number(word) else holding)
    if not found:
        raise _unknown(wanted, word)
    return found


def _words(recipe: Recipe) -> str:
    texts = [recipe.name, recipe.title, recipe.words, recipe.fault or "", *recipe.answers]
    return "\n".join(texts).lower()


def _unknown(wanted: str, word: str) -> UsageError:
    names = [recipe.name for recipe in book()]
    near = get_close_matches(word, names, 3, 0.4)
    if _is_number(word) or not near:
        hint = f"they go from 1 to {len(names)}: `pttool recipes` lists them"
    else:
        hint = f"nearest: {', '.join(near)}"
    return UsageError(f"there is no recipe {wanted!r}", hint)


def _is_number(word: str) -> bool:
    return word.replace(".", "").removeprefix("-").isdecimal()


def _report(found: Sequence[Recipe]) -> Report:
    items = [_item(recipe) for recipe in found]
    return Report(FIELDS, COLUMNS, items, {"recipes": len(items)})


def _item(recipe: Recipe) -> dict[str, Any]:
    return {
        "number": recipe.number,
        "name": recipe.name,
        "title": recipe.title,
        "fault": recipe.fault,
        "kinds": recipe.kinds,
        "commands": list(recipe.commands),
        "functions": list(recipe.functions),
        "library": list(recipe.library),
        "code": recipe.code,
        "answers": recipe.answers,
    }
