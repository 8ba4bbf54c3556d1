"""What a pickle would build, as inert nodes: nothing is looked up, imported or called.

None, bool, int, float, str, bytes and tuple stand for themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Node = Any


class Text(str):
    """A string that knows which opcode pushed it, so that this one use of it can be changed."""

    __slots__ = ("at",)

    at: int

    def __new__(cls, value: str, at: int) -> "Text":
        text = super().__new__(cls, value)
        text.at = at
        return text


@dataclass(slots=True, frozen=True)
class Global:
    """A name that unpickling would import."""

    module: str
    name: str

    @property
    def path(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}"


@dataclass(slots=True, frozen=True)
class Span:
    """Bytes, or a text, too long to be worth copying: where they lie in the pickle.

    `encoding` is that of a text, one of Python's; None for bytes.
    """

    start: int
    stop: int
    encoding: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether it is a text."""
        return self.encoding is not None


@dataclass(slots=True, eq=False, repr=False)
class Dict:
    """A dict or OrderedDict: its pairs in order, doubled keys included, and its attributes."""

    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    state: Node = None

    def get(self, key: str) -> Node:
        """Return the last value of a key, as a dict would, or None."""
        for known, value in reversed(self.pairs):
            if isinstance(known, str) and known == key:
                return value
        return None


@dataclass(slots=True, eq=False, repr=False)
class List:
    """A list."""

    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Set:
    """A set or frozenset."""

    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """An object that unpickling would make by calling `function`, with what follows from it."""

    function: Node
    args: Node
    kwargs: Node = None
    state: Node = None
    items: list[Node] | None = None
    pairs: list[tuple[Node, Node]] | None = None

    @property
    def path(self) -> str:
        """The dotted name of what is called, or an empty string for a computed one."""
        return self.function.path if isinstance(self.function, Global) else ""


@dataclass(slots=True, eq=False, repr=False)
class Persistent:
    """A reference to something outside the pickle, as a storage is."""

    id: Node


def children(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield what a node holds with the key of each: an index, a dict's key, or "@args" and so on.

    "@args", "@kwargs" and "@state" are what an object was made of; a Dict's "@state" its
    attributes.
    """
    if isinstance(node, Dict):
        yield from node.pairs
        if node.state is not None:
            yield "@state", node.state
    elif isinstance(node, (List, Set)):
        yield from enumerate(node.items)
    elif isinstance(node, tuple):
        yield from enumerate(node)
    elif isinstance(node, Call):
        for key, part in (("@args", node.args), ("@kwargs", node.kwargs), ("@state", node.state)):
            if part is not None and part != ():
                yield key, part
        yield from enumerate(node.items or ())
        yield from node.pairs or ()
    elif isinstance(node, Persistent):
        yield "@id", node.id
