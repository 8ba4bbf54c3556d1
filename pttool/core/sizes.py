"""Sizes in bytes as people write them: 5GB, 200MB, 2GiB."""

import re

from pttool.errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
_POWERS = "kmgt"


def parse_size(text: str) -> int:
    """Return a number of bytes: 1 GB is 1000 MB, 1 GiB is 1024 MiB.

    Raises UsageError for anything else, and for less than one byte.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is not None and (match[2] or not match[3]):
        base = 1024 if match[3] else 1000
        power = _POWERS.index(match[2].lower()) + 1 if match[2] else 0
        size = int(float(match[1]) * base**power)
        if size:
            return size
    raise UsageError(f"{text}: is no size", "write it as 5GB, 200MB or 2GiB")
