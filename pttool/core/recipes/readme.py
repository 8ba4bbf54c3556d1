"""The table of recipes in the README, made from the book."""

from collections.abc import Iterator

from pttool.core.recipes.book import Recipe, book

BEGIN = "<!-- recipes: written by `make generate` from pttool/data/recipes.toml -->\n"
END = "<!-- end of recipes -->\n"


def with_table(text: str) -> str:
    """Return a text with the current table between its markers.

    Raises ValueError for a text without them.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the text has no lines {BEGIN!r} and {END!r}")
    return before + begin + "".join(_table()) + end + after


def _table() -> Iterator[str]:
    yield "| | recipe | what is wrong with the common copy | answer |\n"
    yield "|---|---|---|---|\n"
    for recipe in book():
        cells = (str(recipe.number), recipe.title, recipe.fault or "", _answer(recipe))
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def _answer(recipe: Recipe) -> str:
    answers = [*recipe.commands, *recipe.imports, *recipe.library]
    return ", ".join(f"`{answer}`" for answer in answers)
