"""Whether two values of checkpoints are the same, without making either."""

import codecs
import hashlib

from pttool.core.ckpt.files.payload import blocks
from pttool.core.ckpt.integrity.chunks import pickle_in
from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent, Set, Span
from pttool.core.ckpt.types import Checkpoint, Format, Record

# Below it, what values hold is taken to be the same.
DEEPEST = 60
ONE_PICKLE = (Format.TORCH_ZIP, Format.TORCHSCRIPT)
RENAMED = {
    "__builtin__.xrange": "builtins.range",
    "__builtin__.": "builtins.",
    "copy_reg.": "copyreg.",
}
WHOLE_FILE = (Format.TORCH_LEGACY, Format.TORCH_TAR, Format.PICKLE)


def identity(node: Node, checkpoint: Checkpoint) -> str:
    """Return a text that is the same for equal values alone: 1, 1.0 and True are three.

    Long texts and bytes, which are left in the pickle, are read; in shards only their length
    counts.
    """
    if isinstance(node, Record):  # in a distributed checkpoint, a chunk that is no tensor
        pickled = pickle_in(node)
        return _Identities(pickled.record).of(pickled.root)
    return _Identities(_pickle_of(checkpoint)).of(node)


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
    """Return a hash of long bytes; protocol 2 has them `encoded`, as a text of Latin-1."""
    found = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for block in blocks(record, start=span.start, stop=span.stop):
        found.update(decoder.decode(block).encode("latin-1", "replace") if encoded else block)
    return f"bytes {found.hexdigest()}"


class _Identities:
    """Turns nodes of one checkpoint into texts; without a record, long ones by their length."""

    def __init__(self, record: Record | None) -> None:
        self.record = record

    def of(self, node: Node, depth: int = 0) -> str:
        """Return the text of a node."""
        if depth > DEEPEST:
            return "..."

        def inner(part: Node) -> str:
            return self.of(part, depth + 1)

        match node:
            case Span():
                return self._long(node)
            case bytes():
                return f"bytes {hashlib.sha256(node).hexdigest()}"
            case str():
                return repr(str(node))
            case Global():
                return _current(node)
            case tuple():
                return f"({','.join(map(inner, node))})"
            case List(items=items):
                return f"[{','.join(map(inner, items))}]"
            case Set(items=items):
                return f"{{{','.join(sorted(map(inner, items)))}}}"
            case Dict(pairs=pairs, state=state):
                shown = sorted(f"{inner(key)}:{inner(value)}" for key, value in pairs)
                return f"{{{','.join(shown)}}}{inner(state)}"
            case Persistent(id=id):
                return f"@{inner(id)}"
            case Call():
                return self._call(node, depth)
        return f"{type(node).__name__} {node!r}"

    def _call(self, node: Call, depth: int) -> str:
        args = node.args if isinstance(node.args, tuple) else ()
        if node.path == "_codecs.encode" and args and isinstance(args[0], Span):
            return self._long(args[0], encoded=True)
        if node.path == "__builtin__.bytes" and not args:
            return self.of(b"")
        made_of = (node.function, node.args, node.kwargs, node.state)
        filled = (tuple(node.items or ()), tuple(node.pairs or ()))
        return f"call({','.join(self.of(part, depth + 1) for part in (*made_of, *filled))})"

    def _long(self, span: Span, *, encoded: bool = False) -> str:
        if self.record is None:
            return _length(span)
        return _digest(self.record, span, encoded=encoded)


def _current(found: Global) -> str:
    """Return a global by today's name: protocol 2 has those of Python 2, numpy 1 those of old."""
    path = found.path.replace("numpy.core.", "numpy._core.")
    for old, new in RENAMED.items():
        path = path.replace(old, new) if path.startswith(old) else path
    return path
