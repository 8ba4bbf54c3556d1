"""Walk a pickle and note which opcode made each text, so that one use of it can be changed."""

from dataclasses import dataclass

from pttool.core.ckpt.pickles.nodes import Call, Node, Text
from pttool.core.ckpt.pickles.walker import Buffer, Walker
from pttool.errors import InputError

DUP = ord("2")


@dataclass(frozen=True, slots=True)
class Defined:
    """A text that is written out in the pickle."""

    at: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A text that is fetched from the memo."""

    at: int
    end: int
    slot: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What is put into the memo: the text made at `source`, or something else (None)."""

    at: int
    end: int
    slot: int
    source: int | None


class Tracer(Walker):
    """A Walker whose texts know where they are used, and which keeps calls and dicts at hand."""

    def __init__(self, buffer: Buffer, start: int, where: str) -> None:
        super().__init__(buffer, start, where)
        self.events: list[Defined | Fetched | Kept] = []
        self.frames: list[tuple[int, int]] = []
        self.calls: list[Call] = []
        self.fetched: set[int] = set()
        self.root: Node = None

    def walk(self) -> Node:
        """As `Walker.walk`; raises InputError too for texts that are used in a way not traced."""
        self.root = super().walk()
        if self.seen[DUP]:
            raise InputError(f"{self.where}: doubles what is on its stack", "it can't be edited")
        return self.root

    def push_text(self, raw: bytes, encoding: str, errors: str = "strict") -> None:
        """Push a text that knows its opcode."""
        text = Text(str(raw, encoding, errors), self.at)
        self.events.append(Defined(self.at, self.position, str(text)))
        self.make(text)

    def get(self, slot: int) -> None:
        """Push what was kept; a text then knows the opcode that fetched it."""
        kept = self.memo[slot]
        self.fetched.add(slot)
        if isinstance(kept, Text):
            self.events.append(Fetched(self.at, self.position, slot))
            kept = Text(kept, self.at)
        self.stack.append(kept)

    def put(self, slot: int) -> None:
        """Keep what is on top."""
        super().put(slot)
        top = self.stack[-1]
        source = top.at if isinstance(top, Text) else None
        self.events.append(Kept(self.at, self.position, slot, source))

    def call(self, function: Node, args: Node, kwargs: Node = None) -> None:
        """Push what a call would return."""
        super().call(function, args, kwargs)
        made = self.stack[-1]
        if isinstance(made, Call):
            self.calls.append(made)

    def frame(self, size: int) -> None:
        """Note where a frame is announced, whose size an edit makes wrong."""
        self.frames.append((self.at, self.position))
