"""What the user chooses for `profile model`. Without torch, so that it is checked at once."""

from enum import StrEnum

from pttool.errors import UsageError


class By(StrEnum):
    """What `profile model` has a row for: the batch sizes, or the parts of a call."""

    BATCH = "batch"
    MODULE = "module"
    OP = "op"


def parse_batches(text: str) -> list[int]:
    """Return the batch sizes of `N,N,...`, each once. Raises UsageError for what is no size."""
    sizes = [part.strip() for part in text.split(",")]
    for size in sizes:
        if not (size.isascii() and size.isdecimal() and int(size) > 0):
            raise UsageError(f"--batch {text}: {size!r} is no batch size", "--batch 1,8,32")
    return list(dict.fromkeys(map(int, sizes)))
