"""Whether two values of checkpoints are the same, without making either."""

import hashlib
import itertools
from collections.abc import Iterable

from pttool.core.ckpt.files.payload import blocks
from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent, Set, Span
from pttool.core.ckpt.pickles.spans import bytes_of
from pttool.core.ckpt.types import Checkpoint, Format, Record, Value

# Below it, what values hold is taken to be the same.
DEEPEST = 60
ONE_PICKLE = (Format.TORCH_ZIP, Format.TORCHSCRIPT)
RENAMED = {
    "__builtin__.xrange": "builtins.range",
    "__builtin__.": "builtins.",
    "copy_reg.": "copyreg.",
}
SMALL = (type(None), bool, int, float)
LONGEST_SHOWN = 64
WHOLE_FILE = (Format.TORCH_LEGACY, Format.TORCH_TAR, Format.PICKLE)


def fingerprint(value: Value, checkpoint: Checkpoint) -> str:
    """Return a text that is the same for equal values alone: 1, 1.0 and True are three.

    Long texts and bytes, which are left in the pickle, are read; in shards only their length
    counts.
    """
    return _Fingerprints(value.pickle or _pickle_of(checkpoint)).of(value.node)


def _pickle_of(checkpoint: Checkpoint) -> Record | None:
    """Return the record in which long texts and bytes lie."""
    if checkpoint.format in ONE_PICKLE:
        return checkpoint.pickles[0].record
    if checkpoint.format in WHOLE_FILE:
        size = checkpoint.path.stat().st_size
        return Record("pickle", checkpoint.path, 0, size, size)
    return None


def _length(span: Span) -> str:
    return f"{span.stop - span.start} bytes"


def _digest(record: Record, span: Span, *, encoded: bool = False) -> str:
    """Return a hash of long bytes; protocols below 3 have them `encoded`, as a text of Latin-1."""
    content: Iterable[bytes] = blocks(record, start=span.start, stop=span.stop)
    if encoded and span.encoding is not None:
        content = bytes_of(content, span.encoding)
    return f"bytes {_hashed(content)}"


def _hashed(content: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for block in content:
        found.update(block)
    return found.hexdigest()


class _Fingerprints:
    """Turns nodes of one checkpoint into texts; without a record, long ones by their length.

    A node that is shared is looked at once for each depth, and what holds others has a short text.
    """

    def __init__(self, record: Record | None) -> None:
        self.record = record
        # With the node, which keeps its id from being another's.
        self.known: dict[tuple[int, int], tuple[Node, str]] = {}

    def of(self, node: Node, depth: int = 0) -> str:
        """Return the text of a node."""
        if isinstance(node, str) and len(node) <= LONGEST_SHOWN:
            return repr(str(node))
        if isinstance(node, SMALL):
            return f"{type(node).__name__} {node!r}"
        if depth > DEEPEST:
            return "..."
        key = (id(node), depth)
        if key not in self.known:
            self.known[key] = node, self._of(node, depth)
        return self.known[key][1]

    def _of(self, node: Node, depth: int) -> str:
        below = depth + 1
        match node:
            case Span():
                return self._long(node)
            case bytes():
                return f"bytes {_hashed([node])}"
            case str():
                return f"str {_hashed([node.encode('utf-8', 'surrogatepass')])}"
            case Global():
                return _current(node)
            case tuple():
                return self._all("tuple", node, below)
            case List(items=items):
                return self._all("list", items, below)
            case Set(items=items):
                return _joined("set", sorted(self.of(item, below) for item in items))
            case Dict(pairs=pairs, state=state):
                shown = (f"{self.of(key, below)}:{self.of(each, below)}" for key, each in pairs)
                return _joined("dict", [*sorted(shown), self.of(state, below)])
            case Persistent(id=id):
                return f"@{self.of(id, below)}"
            case Call():
                return self._call(node, below)
        raise TypeError(type(node).__name__)

    def _call(self, node: Call, depth: int) -> str:
        args = node.args if isinstance(node.args, tuple) else ()
        if node.path == "_codecs.encode" and args and isinstance(args[0], Span):
            return self._long(args[0], encoded=True)
        if node.path == "__builtin__.bytes" and not args:
            return self.of(b"")
        pairs = itertools.chain.from_iterable(node.pairs or ())
        filled = (self._all("items", node.items or (), depth), self._all("pairs", pairs, depth))
        made_of = (node.function, node.args, node.kwargs, node.state)
        return _joined("call", [*(self.of(part, depth) for part in made_of), *filled])

    def _all(self, kind: str, nodes: Iterable[Node], depth: int) -> str:
        return _joined(kind, (self.of(node, depth) for node in nodes))

    def _long(self, span: Span, *, encoded: bool = False) -> str:
        if self.record is None:
            return _length(span)
        return _digest(self.record, span, encoded=encoded)


def _joined(kind: str, texts: Iterable[str]) -> str:
    return f"{kind} {_hashed(f'{text},'.encode() for text in texts)}"


def _current(found: Global) -> str:
    """Return a global by today's name: protocol 2 has those of Python 2, numpy 1 those of old."""
    path = found.path.replace("numpy.core.", "numpy._core.")
    for old, new in RENAMED.items():
        path = path.replace(old, new) if path.startswith(old) else path
    return path
