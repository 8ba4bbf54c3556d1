"""The dotted names of what a checkpoint holds."""

from pttool.core.ckpt.pickles.nodes import Node
from pttool.core.ckpt.types import Tensor, Value

# Where a module keeps what its state dict names without saying where.
MODULE_PARTS = frozenset(("_modules", "_parameters", "_buffers"))


def dotted(path: tuple[Node, ...]) -> str:
    """Return the path as the code that uses the object would write it, as model.conv.weight.

    The state of an object has no name of its own, nor have the dicts in which a module keeps its
    parameters, buffers and children.
    """
    parts: list[str] = []
    after_state = False
    for key in path:
        is_hidden = key == "@state" or (after_state and key in MODULE_PARTS)
        after_state = isinstance(key, str) and key == "@state"
        if not is_hidden:
            parts.append(_text(key))
    return ".".join(parts)


def name_of(leaf: Tensor | Value) -> str:
    """Return the dotted name of a tensor or value."""
    return dotted(leaf.path)


def _text(key: Node) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("utf-8", "backslashreplace")
    return str(key)
