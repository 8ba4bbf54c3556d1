"""Walk the nodes of a checkpoint to its tensors and values, in the order that it holds them."""

from collections.abc import Iterator
from typing import Any

from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent, Set, children
from pttool.core.ckpt.tensors.recognition import recognise_tensor
from pttool.core.ckpt.tensors.storages import Storages
from pttool.core.ckpt.types import Tensor, Value

# An honest checkpoint needs a fraction of either; a hostile one must end in about a second.
DEEPEST = 500
MAX_STEPS = 1_000_000

# Stands in a path for a key that is no text, number or plain tuple of them.
OBJECT = "@object"

TOO_DEEP = f"it is nested deeper than {DEEPEST} levels: what lies below is not listed"
TOO_MUCH = "it holds more than can be listed: the rest is left out"
CIRCULAR = "it holds itself: what lies below is not listed again"


class Leaves:
    """Iterates over the tensors and values below a node, and collects what was left out."""

    def __init__(self, root: Node, storages: Storages) -> None:
        self.root = root
        self.storages = storages
        self.warnings: dict[str, None] = {}
        self.steps = 0

    def __iter__(self) -> Iterator[Tensor | Value]:
        found = self._leaf((), self.root)
        if found is not None:
            yield found
            return
        # One level of nesting each: what is left of a node's children, and the node itself.
        start: tuple[Node, ...] = ()
        levels = [(start, self.root, children(self.root))]
        above = {id(self.root)}
        while levels:
            path, node, rest = levels[-1]
            for key, child in rest:
                self.steps += 1 + len(levels) // 16
                if self.steps > MAX_STEPS:
                    self.warnings[TOO_MUCH] = None
                    return
                below = (*path, key if _is_name(key) else OBJECT)
                found = self._leaf(below, child)
                if found is not None:
                    yield found
                elif id(child) in above:
                    self.warnings[CIRCULAR] = None
                elif len(levels) >= DEEPEST:
                    self.warnings[TOO_DEEP] = None
                else:
                    levels.append((below, child, children(child)))
                    above.add(id(child))
                    break
            else:
                levels.pop()
                above.discard(id(node))

    def _leaf(self, path: tuple[Any, ...], node: Node) -> Tensor | Value | None:
        if isinstance(node, (Call, Persistent)):
            tensor = recognise_tensor(node, path, self.storages)
            if tensor is not None:
                return tensor
        return Value(path, node) if is_plain(node) else None


def is_plain(node: Node) -> bool:
    """Whether a node is shown as one value: a scalar, an array, or a container of scalars alone."""
    if isinstance(node, (List, Set)):
        return all(map(is_scalar, node.items))
    if isinstance(node, tuple):
        return all(map(is_scalar, node))
    if isinstance(node, Dict):
        return not node.pairs and node.state is None
    if isinstance(node, Call):
        return is_array(node) or _is_made_of_scalars(node)
    return True


def is_scalar(node: Node) -> bool:
    """Whether a node holds no others."""
    return not isinstance(node, (Dict, List, Set, Call, Persistent, tuple))


def _is_name(key: Node) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(is_scalar(part) and not isinstance(part, Global) for part in parts)


def is_array(node: Call) -> bool:
    """Whether a node is an array or a scalar of numpy."""
    module, _, name = node.path.rpartition(".")
    is_numpy = module in ("numpy.core.multiarray", "numpy._core.multiarray")
    return is_numpy and name in ("_reconstruct", "scalar")


def _is_made_of_scalars(node: Call) -> bool:
    made_of = (node.args, node.kwargs, node.state, *(node.items or ()))
    return not node.pairs and all(
        is_scalar(part) or (isinstance(part, tuple) and all(map(is_scalar, part)))
        for part in made_of
    )
