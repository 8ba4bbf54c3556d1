"""What is odd about a zip's directory, in words: other readers may see another file in it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pttool.core.ckpt.files.words import listed, quoted
from pttool.core.ckpt.zips import layout as fmt
from pttool.core.ckpt.zips.end import End
from pttool.core.ckpt.zips.layout import Entry

_UNSAFE = re.compile(r"^/|(^|/)\.\.(/|$)|\\|^[A-Za-z]:|[\0-\x1f\x7f]")
_ENCRYPTION = fmt.ENCRYPTED | fmt.STRONGLY_ENCRYPTED | fmt.MASKED


def directory_oddities(end: End, ordered: Sequence[Entry], start: int, stop: int) -> Iterator[str]:
    """Yield which bytes of a zip nobody claims, as far as the directory alone tells.

    `ordered` are the entries as they lie between its `start` and `stop`.
    """
    used = sum(entry.directory_bytes for entry in ordered)
    behind = end.offset - end.directory_offset - end.directory_bytes
    before = (ordered[0].header_offset if ordered else end.directory_offset) - start
    if before:
        yield f"{before} bytes before the first record"
    if used != end.directory_bytes:
        yield f"{end.directory_bytes - used} bytes of the directory belong to no record"
    if behind:
        yield f"{behind} bytes between the directory and the end record"
    if stop != end.stop:
        yield f"{stop - end.stop} bytes after the end record"
    if end.comment:
        yield f"a comment of {len(end.comment)} bytes"
    if end.is_split:
        yield "it is one part of a zip in several files"
    if end.is_contradicted:
        yield "its two end records contradict each other"


def name_oddities(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield which records have a name, flag or method that a checkpoint has no use for.

    torch finds records without regard to case: names that differ in nothing else are doubled.
    """
    folded = Counter(entry.name.lower() for entry in entries)
    doubled = dict.fromkeys(entry.name for entry in entries if folded[entry.name.lower()] > 1)
    unsafe = [entry.name for entry in entries if _UNSAFE.search(entry.name)]
    encrypted = [entry.name for entry in entries if entry.flags & _ENCRYPTION]
    unknown = [entry.name for entry in entries if entry.method not in (fmt.STORED, fmt.DEFLATED)]
    two_sizes = [
        entry.name
        for entry in entries
        if entry.method == fmt.STORED and entry.size_bytes != entry.stored_bytes
    ]
    for names, what in (
        (list(doubled), "more than one record of this name"),
        (unsafe, "an unsafe name"),
        (encrypted, "flagged as encrypted"),
        (unknown, "compressed by an unknown method"),
        (two_sizes, "stored as it is, but with two sizes"),
    ):
        if names:
            yield f"{listed(names, quoted)}: {what}"
