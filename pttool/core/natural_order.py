"""The order in which people number files: part2 before part10."""

import re

# int() refuses to read longer numbers.
MOST_DIGITS = 4000


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts the digits in a name as numbers. 0..9 only: as int() reads them."""
    parts = re.split("([0-9]+)", name)
    return [(int(part[:MOST_DIGITS]), part) if part.isdecimal() else (-1, part) for part in parts]
