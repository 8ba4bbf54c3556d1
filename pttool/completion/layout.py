"""How a long list of words is laid out in a generated script, whatever the shell."""

import textwrap
from collections.abc import Iterable


def fill(words: Iterable[str], indent: int) -> str:
    """Return the words on lines of at most 96 characters, each indented; no word is broken."""
    return textwrap.fill(
        " ".join(words),
        96,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
