"""Walk a pickle of protocol 0 to 5 into inert nodes: nothing is looked up, imported or called.

Source: CPython's Lib/pickletools.py, which describes every opcode.
"""

import mmap
import sys
from struct import Struct
from struct import error as StructError
from typing import Any

from pttool.core.ckpt.pickles.budget import (
    BYTES_OF_A_SHARE,
    CALL,
    CONTAINER,
    LONGEST_BYTES,
    LONGEST_NUMBER,
    LONGEST_TEXT,
    MAX_OPCODES,
    MAX_SHARES,
    MOST_MARKS,
    OBJECT,
    PAIR,
    SHORT_TEXT,
)
from pttool.core.ckpt.pickles.calls import called, named
from pttool.core.ckpt.pickles.literals import Malformed
from pttool.core.ckpt.pickles.memo import Memo
from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent, Set, Span
from pttool.core.ckpt.pickles.opcodes import HANDLERS, STOP
from pttool.core.ckpt.types import Use
from pttool.errors import InputError

Buffer = bytes | mmap.mmap


class Walker:
    """A pickle machine that builds nodes. `where` names the pickle in errors."""

    def __init__(self, buffer: Buffer, start: int, where: str) -> None:
        self.buffer = buffer
        self.start = self.position = self.at = start
        self.where = where
        self.protocol = 0
        self.stack: list[Node] = []
        self.marks: list[list[Node]] = []
        self.memo = Memo()
        self.globals: dict[Global, Global] = {}
        self.persistent_ids: list[Node] = []
        self.uses: set[tuple[Use, Global | None]] = set()
        self.seen = bytearray(256)
        self.shares = self.opcodes = 0
        self.most_opcodes = MAX_OPCODES

    def walk(self) -> Node:
        """Return what the pickle would build; `position` is then behind its STOP.

        Raises InputError for a pickle that is cut, makes no sense, or is absurdly large.
        """
        buffer, seen, count = self.buffer, self.seen, 0
        try:
            for count in range(self.most_opcodes):  # noqa: B007
                self.at = self.position
                code = buffer[self.at]
                seen[code] = 1
                self.position += 1
                if code == STOP:
                    return self._result()
                HANDLERS[code](self)
        except Malformed as error:
            raise self._broken(str(error)) from None
        except (IndexError, KeyError, ValueError, StructError, OverflowError) as error:
            if self.position >= len(buffer):
                raise self._broken("it ends without a STOP", "copy or download it again") from error
            name = HANDLERS[buffer[self.at]].__name__.strip("_").upper()
            raise self._broken(f"{name} makes no sense ({type(error).__name__})") from error
        finally:
            self.opcodes = count + 1
        raise self._broken(f"it has more than {self.most_opcodes:,} opcodes")

    def step(self) -> None:
        """Do the next opcode of a pickle that is known to be sound."""
        self.at = self.position
        self.position += 1
        HANDLERS[self.buffer[self.at]](self)

    def _result(self) -> Node:
        if len(self.stack) != 1 or self.marks:
            raise Malformed(f"{len(self.stack)} objects are left at its STOP, not 1")
        return self.stack[0]

    def _broken(self, reason: str, hint: str = "it is damaged, or no pickle") -> InputError:
        return InputError(f"{self.where}: broken pickle at byte {self.at:,}: {reason}", hint)

    # What handlers share.

    def take(self, count: int) -> bytes:
        """Return the next bytes of the pickle."""
        start = self.advance(count)
        return self.buffer[start : self.position]

    def advance(self, count: int) -> int:
        """Step over the next bytes and return where they begin."""
        start = self.position
        if not 0 <= count <= len(self.buffer) - start:
            raise Malformed(f"{count:,} bytes are announced, {len(self.buffer) - start:,} are left")
        self.position = start + count
        return start

    def byte(self) -> int:
        """Return the next byte."""
        byte = self.buffer[self.position]
        self.position += 1
        return byte

    def line(self) -> bytes:
        """Return the rest of the line, which is a number or a name."""
        start, stop = self.next_line()
        if stop - start > LONGEST_TEXT:
            raise Malformed(f"a number or name of {stop - start:,} bytes")
        return self.buffer[start:stop]

    def next_line(self) -> tuple[int, int]:
        """Step over the rest of the line and return where it lies, without its end."""
        start, stop = self.position, self.buffer.find(b"\n", self.position)
        if stop < 0:
            raise Malformed("a line has no end")
        self.position = stop + 1
        return start, stop

    def number(self, layout: Struct) -> Any:
        """Return the number at the position."""
        start = self.advance(layout.size)
        return layout.unpack_from(self.buffer, start)[0]

    def make(self, node: Node, shares: int = OBJECT) -> None:
        """Push a new object that takes so many shares of memory."""
        self.spend(shares)
        self.stack.append(node)

    def spend(self, shares: int) -> None:
        """Count shares of memory."""
        self.shares += shares
        if self.shares > MAX_SHARES:
            raise Malformed("it makes more objects than 250,000 tensors take")

    def mark(self) -> None:
        """Begin a new stack, up to which `since_mark` takes what is pushed."""
        if len(self.marks) >= MOST_MARKS:
            raise Malformed(f"it has {MOST_MARKS:,} MARKs at once")
        self.marks.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Node]:
        """Return what was pushed since the last MARK, and drop the mark."""
        if not self.marks:
            raise Malformed("it has no MARK")
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def pairs_since_mark(self) -> list[tuple[Node, Node]]:
        """Return what was pushed since the last MARK, two by two."""
        items = self.since_mark()
        if len(items) % 2:
            raise Malformed("a key has no value")
        return list(zip(items[::2], items[1::2], strict=True))

    def find(self, module: Node, name: Node) -> None:
        """Push a name that unpickling would import."""
        if not (isinstance(module, str) and isinstance(name, str)):
            raise Malformed("a global has no name")
        found = Global(str(module), str(name))
        if found not in self.globals:
            self.globals[found] = found
            self.spend(CALL + (len(module) + len(name)) // BYTES_OF_A_SHARE)
        self.make(self.globals[found])

    def call(self, function: Node, args: Node, kwargs: Node = None) -> None:
        """Push what a call would return."""
        self.uses.add(("call", named(function)))
        made = called(function, args, kwargs)
        self.make(made, CONTAINER if isinstance(made, (Dict, Set)) else CALL)

    def persistent(self, id: Node) -> None:
        """Push a reference to something outside the pickle."""
        self.persistent_ids.append(id)
        self.make(Persistent(id))

    def frame(self, size: int) -> None:
        """Note a frame, which only tells a reader of streams how far to read ahead."""

    def push_text(self, raw: bytes, encoding: str, errors: str = "strict") -> None:
        """Push a string."""
        text = str(raw, encoding, errors)
        is_short = len(raw) <= SHORT_TEXT
        self.make(text, OBJECT if is_short else sys.getsizeof(text) // BYTES_OF_A_SHARE)

    def text(self, count: int) -> None:
        """Push a string of UTF-8, or say where a very long one lies."""
        start = self.advance(count)
        if count > LONGEST_TEXT:
            self.make(Span(start, self.position, "utf-8"))
        else:
            self.push_text(self.buffer[start : self.position], "utf-8", "surrogatepass")

    def escaped(self, start: int, stop: int, encoding: str) -> None:
        """Push a string with escapes for some characters, or say where a very long one lies."""
        if stop - start > LONGEST_TEXT:
            self.make(Span(start, stop, encoding))
        else:
            self.push_text(self.buffer[start:stop], encoding)

    def old_text(self, count: int) -> None:
        """Push a string of Python 2, which has no encoding, or say where a very long one lies."""
        start = self.advance(count)
        if count > LONGEST_TEXT:
            self.make(Span(start, self.position))
            return
        raw = self.buffer[start : self.position]
        try:
            self.push_text(raw, "utf-8")
        except UnicodeDecodeError:
            self.push_text(raw, "latin-1")

    def bytes(self, count: int) -> None:
        """Push bytes, or say where very many lie."""
        start = self.advance(count)
        if count > LONGEST_BYTES:
            self.make(Span(start, self.position))
        else:
            self.make(self.buffer[start : self.position])

    def long(self, count: int) -> None:
        """Push a whole number of two's complement, or say where an absurd one lies."""
        start = self.advance(count)
        if count > LONGEST_NUMBER:
            self.make(Span(start, self.position))
        else:
            self.make(int.from_bytes(self.buffer[start : self.position], "little", signed=True))

    def set_pairs(self, pairs: list[tuple[Node, Node]]) -> None:
        """Add pairs to the dict, or object, on top."""
        target = self.stack[-1]
        if not isinstance(target, (Dict, Call)):
            raise Malformed(f"a {type(target).__name__} takes no keys")
        if isinstance(target, Call):
            self.uses.add(("keys", named(target.function)))
        if target.pairs is None:
            target.pairs = []
        target.pairs.extend(pairs)
        self.spend(len(pairs) * PAIR)

    def add_items(self, items: list[Node]) -> None:
        """Add items to the list, set or object on top."""
        target = self.stack[-1]
        if not isinstance(target, (List, Set, Call)):
            raise Malformed(f"a {type(target).__name__} takes no items")
        if isinstance(target, Call):
            self.uses.add(("items", named(target.function)))
        if target.items is None:
            target.items = []
        target.items.extend(items)

    def set_state(self, state: Node) -> None:
        """Give the object on top a state."""
        target = self.stack[-1]
        if not isinstance(target, (Call, Dict)):
            raise Malformed(f"a {type(target).__name__} takes no state")
        if isinstance(target, Call):
            self.uses.add(("state", named(target.function)))
        target.state = state

    def put(self, slot: int) -> None:
        """Keep what is on top under a number."""
        self.memo[slot] = self.stack[-1]

    def get(self, slot: int) -> None:
        """Push what was kept under a number."""
        self.stack.append(self.memo[slot])
