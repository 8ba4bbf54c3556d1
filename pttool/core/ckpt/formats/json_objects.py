"""What the parser of JSON lets pass and a checkpoint must not hold."""

from collections import Counter
from typing import Any

from pttool.core.ckpt.files.words import quoted


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, as an object_pairs_hook. Raises ValueError for a key that occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(n for n, _ in pairs).items() if count > 1)
        raise ValueError(f"{quoted(twice)} occurs twice")
    return found
