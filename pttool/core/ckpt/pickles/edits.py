"""Change single uses of texts in a pickle, byte by byte, and leave all else as it is.

A text that is fetched from the memo is shared with other uses. A changed use is written out and
kept again in the same slot; before the next use that is not changed, the old text is.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pttool.core.ckpt.pickles.traces import Defined, Fetched, Kept, Tracer
from pttool.core.ckpt.pickles.walker import Buffer, Walker

MEMOIZE = 0x94
BINUNICODE, BINPUT, LONG_BINPUT, STOP = b"X", b"q", b"r", b"."
EMPTY_TUPLE, MARKED_TUPLE, BININT1, BININT2 = b")", b"(t", b"K", b"M"


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes that replace those between two positions."""

    start: int
    stop: int
    content: bytes


def edits(trace: Tracer, changes: Mapping[int, str]) -> list[Edit]:
    """Return the edits that give each text made at a position of `changes` its new value.

    Frames are dropped with them, since their sizes would be wrong and readers need none.
    """
    found: list[Edit] = []
    made: dict[int, tuple[str, str]] = {}  # by position: the text as it was, and as it becomes
    memo: dict[int, tuple[str, str]] = {}
    for event in trace.events:
        match event:
            case Defined(at, end, value):
                made[at] = value, changes.get(at, value)
                if made[at][1] != value:
                    found.append(Edit(at, end, literal(made[at][1])))
            case Kept(_, _, slot, source):
                memo.pop(slot, None)
                if source is not None:
                    memo[slot] = made[source]
            case Fetched(at, end, slot):
                original, current = memo[slot]
                made[at] = original, changes.get(at, original)
                if made[at][1] != current:
                    found.append(Edit(at, end, literal(made[at][1]) + kept(slot)))
                    memo[slot] = made[at]
    if found:
        found += [Edit(start, stop, b"") for start, stop in trace.frames]
    return sorted(found, key=lambda edit: edit.start)


def applied(buffer: Buffer, start: int, stop: int, edits: Sequence[Edit]) -> bytes:
    """Return the bytes between two positions with the edits made."""
    parts = []
    for edit in edits:
        parts += [buffer[start : edit.start], edit.content]
        start = edit.stop
    return b"".join([*parts, buffer[start:stop]])


def fitted(trace: Tracer, edits: Sequence[Edit]) -> bytes | None:
    """Return the pickle with the edits made and its old length, or None where that can't be.

    Where it would become longer, room is made by not keeping what nothing fetches.
    """
    start, stop = trace.start, trace.position
    excess = sum(len(edit.content) - (edit.stop - edit.start) for edit in edits)
    for unused in _unused_puts(trace) if excess > 0 else ():
        edits = [*edits, unused]
        excess -= unused.stop - unused.start
        if excess <= 0:
            break
    ordered = sorted(edits, key=lambda edit: edit.start)
    return padded(applied(trace.buffer, start, stop, ordered), stop - start)


def _unused_puts(trace: Tracer) -> Iterator[Edit]:
    """Yield the edits that leave out each opcode that keeps what is never fetched.

    MEMOIZE counts what is kept, so that none can be left out beside it.
    """
    if trace.seen[MEMOIZE]:
        return
    for event in trace.events:
        if isinstance(event, Kept) and event.slot not in trace.fetched:
            yield Edit(event.at, event.end, b"")


def padded(pickle: bytes, length: int) -> bytes | None:
    """Return the pickle made `length` bytes long without a change to what it means, or None.

    The result is kept once more, in a slot that nothing reads any more, just before the STOP. That
    takes 2 or 5 bytes; for a gap of 1 or 3 one opcode is written in a longer way. Torch's
    weights_only unpickler has no opcode that does nothing.
    """
    gap = length - len(pickle)
    if gap in (1, 3):
        return _widened(pickle, gap)
    if gap < 0:
        return None
    long, short = (1, gap - 5) if gap % 2 else (0, gap)
    padding = kept(0, wide=True) * long + kept(0) * (short // 2)
    return pickle[:-1] + padding + STOP


def _widened(pickle: bytes, gap: int) -> bytes | None:
    """Return the pickle with the first opcode that can be `gap` bytes longer, or None."""
    walker = Walker(pickle, 0, "the changed pickle")
    while (code := pickle[walker.position : walker.position + 1]) != STOP:
        at = walker.position
        if code == EMPTY_TUPLE and gap == 1:
            return pickle[:at] + MARKED_TUPLE + pickle[at + 1 :]
        if code == BININT1 and gap == 1:
            return pickle[:at] + BININT2 + pickle[at + 1 : at + 2] + b"\0" + pickle[at + 2 :]
        if code == BINPUT and gap == 3:
            return pickle[:at] + kept(pickle[at + 1], wide=True) + pickle[at + 2 :]
        walker.step()
    return None


def literal(text: str) -> bytes:
    """Return the opcode that pushes a text."""
    raw = text.encode("utf-8", "surrogatepass")
    return BINUNICODE + struct.pack("<I", len(raw)) + raw


def kept(slot: int, *, wide: bool = False) -> bytes:
    """Return the opcode that keeps what is on top of the stack."""
    if slot > 0xFF or wide:
        return LONG_BINPUT + struct.pack("<I", slot)
    return BINPUT + bytes([slot])
