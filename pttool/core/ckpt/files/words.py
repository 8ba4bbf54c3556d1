"""Names and texts out of files, made fit for one line of an error or a note."""

from collections.abc import Callable, Iterable

LONGEST_NAME = 100
LONGEST_QUOTE = 60
MOST_NAMES = 3


def quoted(name: str) -> str:
    """Return a name in quotes, with escapes for what can't be seen."""
    return repr(name) if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]!r}..."


def excerpt(text: str) -> str:
    """Return the beginning of a text as one line in quotes, with escapes for what can't be seen."""
    line = " ".join(text[: 4 * LONGEST_QUOTE].split())
    return repr(line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 3] + "...")


def bare(name: str) -> str:
    """Return the beginning of a name as one line without quotes."""
    return excerpt(name)[1:-1]


def listed(names: Iterable[str], shown: Callable[[str], str] = bare) -> str:
    """Return the first names of many, each as it is to be shown, and how many more there are."""
    every = list(names)
    rest = len(every) - MOST_NAMES
    first = ", ".join(map(shown, every[:MOST_NAMES]))
    return f"{first} and {rest:,} more" if rest > 0 else first
