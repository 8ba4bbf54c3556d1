"""Find the weights in a checkpoint: the state dict that a model of it would load."""

from collections.abc import Sequence
from dataclasses import dataclass

from pttool.core.ckpt.pickles.nodes import Call, Dict, List, Node, Set, children
from pttool.core.ckpt.tensors.elements import count, identity
from pttool.core.ckpt.tensors.paths import dotted
from pttool.core.ckpt.types import Checkpoint, Tensor
from pttool.errors import InputError, UsageError

# Where training code puts the weights, in the order in which they are looked for.
USUAL_KEYS = (
    "state_dict", "model_state_dict", "model", "module", "net", "network", "weights", "params",
    "generator", "ema", "model_ema", "state_dict_ema", "params_ema",
)  # fmt: skip
# What is never a model's.
OTHER_KEYS = ("optim", "sched", "scaler", "rng", "callback", "loop", "hyper_parameters", "args")
PARALLEL_WRAPPERS = ("DataParallel", "DistributedDataParallel")
# Of what real ones need, a multiple: parts of a path.
DEEPEST_DICT = 60
DEEPEST_MODULE = 600

Path = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors of a state dict, by name and in order; `path` leads to it from the root."""

    path: Path
    tensors: tuple[tuple[str, Tensor], ...]

    @property
    def elements(self) -> int:
        """The number of elements, tied ones once."""
        return sum(map(count, {identity(t): t for _, t in self.tensors}.values()))


def find_weights(checkpoint: Checkpoint, key: str | None = None) -> Weights:
    """Return the weights in a checkpoint, or those under a dotted key.

    Raises InputError where there are none, UsageError for a key that isn't there.
    """
    if key is not None:
        return _under_key(checkpoint, key)
    if checkpoint.root is None:
        return Weights((), tuple((dotted(t.path), t) for t in checkpoint.tensors))
    found = _best(checkpoint, checkpoint.tensors, (), checkpoint.root)
    if not found.tensors:
        raise InputError(
            f"{checkpoint.path}: holds no weights", "pttool ckpt inspect tells what it holds"
        )
    return found


def is_module(node: Node) -> bool:
    """Whether a node is a pickled torch.nn.Module."""
    return (
        isinstance(node, Call)
        and isinstance(node.state, Dict)
        and isinstance(node.state.get("_parameters"), Dict)
        and isinstance(node.state.get("_modules"), Dict)
    )


def _best(checkpoint: Checkpoint, tensors: Sequence[Tensor], path: Path, node: Node) -> Weights:
    """Return the weights of a module or dict, or those of the one dict inside of it that has them.

    `tensors` are those below the path. A dict under a usual key comes first; below the root, dicts
    of nothing but tensors are one state dict. Raises InputError where several could be meant.
    """
    if is_module(node):
        return _of_module(tensors, path, node)
    if not isinstance(node, Dict) or len(path) >= DEEPEST_DICT:
        return _of_dict(tensors, path)
    if path and _holds_only_tensors(checkpoint, path):
        return _of_dict(tensors, path)
    below = _grouped(tensors, len(path))
    nested = {
        str(key): child
        for key, child in node.pairs
        if isinstance(key, str)
        and key in below
        and (is_module(child) or isinstance(child, Dict))
        and not _is_other(key)
    }
    loose = [tensor for tensor in tensors if len(tensor.path) == len(path) + 1]
    usual = [key for key in USUAL_KEYS if key in nested]
    if not usual and (not nested or any("." in str(tensor.path[-1]) for tensor in loose)):
        return _of_dict(loose or _of_no_other(tensors, len(path)), path)
    if not usual and len(nested) > 1:
        counts = ", ".join(f"{key} ({len(below[key])} tensors)" for key in nested)
        raise InputError(
            f"{checkpoint.path}: holds several sets of weights: {counts}",
            f"--key {dotted((*path, next(iter(nested))))} takes one of them",
        )
    chosen = next(iter(usual or nested))
    return _best(checkpoint, below[chosen], (*path, chosen), nested[chosen])


def _holds_only_tensors(checkpoint: Checkpoint, path: Path) -> bool:
    """Whether a dict has no values in it, but those that state dicts keep beside their tensors."""
    size = len(path)
    return not any(
        value.path[:size] == path and "_metadata" not in value.path for value in checkpoint.values
    )


def _is_other(key: Node) -> bool:
    return any(other in str(key) for other in OTHER_KEYS)


def _of_no_other(tensors: Sequence[Tensor], at: int) -> list[Tensor]:
    return [
        tensor for tensor in tensors if len(tensor.path) > at and not _is_other(tensor.path[at])
    ]


def _grouped(tensors: Sequence[Tensor], at: int) -> dict[Node, list[Tensor]]:
    """Return the tensors by one part of their paths."""
    groups: dict[Node, list[Tensor]] = {}
    for tensor in tensors:
        if len(tensor.path) > at:
            groups.setdefault(tensor.path[at], []).append(tensor)
    return groups


def _of_dict(tensors: Sequence[Tensor], path: Path) -> Weights:
    return Weights(path, tuple((dotted(tensor.path[len(path) :]), tensor) for tensor in tensors))


def _below(checkpoint: Checkpoint, path: Path) -> list[Tensor]:
    return [tensor for tensor in checkpoint.tensors if tensor.path[: len(path)] == path]


def _of_module(tensors: Sequence[Tensor], path: Path, node: Call) -> Weights:
    """Return what state_dict() of a pickled module gives, in its order.

    Source: torch.nn.Module._save_to_state_dict: parameters, persistent buffers, then children.
    """
    found: list[tuple[str, Tensor]] = []

    def visit(tensors: Sequence[Tensor], path: Path, node: Call, prefix: str) -> None:
        hidden = _non_persistent(node.state.get("_non_persistent_buffers_set"))
        state = _grouped(tensors, len(path)).get("@state", [])
        parts = _grouped(state, len(path) + 1)
        for part in ("_parameters", "_buffers"):
            own = [t for t in parts.get(part, ()) if len(t.path) == len(path) + 3]
            by_name = {tensor.path[-1]: tensor for tensor in own}
            for name in dict(_pairs(node.state.get(part))):
                tensor = by_name.get(name)
                if tensor is not None and not (part == "_buffers" and name in hidden):
                    found.append((f"{prefix}{name}", tensor))
        children = _grouped(parts.get("_modules", ()), len(path) + 2)
        for name, child in dict(_pairs(node.state.get("_modules"))).items():
            if is_module(child) and name in children and len(path) < DEEPEST_MODULE:
                below = (*path, "@state", "_modules", name)
                visit(children[name], below, child, f"{prefix}{name}.")

    inner = node.state.get("_modules").get("module")
    if node.path.rpartition(".")[2] in PARALLEL_WRAPPERS and is_module(inner):
        path, node = (*path, "@state", "_modules", "module"), inner
        tensors = [tensor for tensor in tensors if tensor.path[: len(path)] == path]
    visit(tensors, path, node, "")
    return Weights(path, tuple(found))


def _pairs(node: Node) -> list[tuple[Node, Node]]:
    return node.pairs if isinstance(node, Dict) else []


def _non_persistent(node: Node) -> set[str]:
    items = node.items if isinstance(node, (Set, List)) else []
    return {name for name in items or [] if isinstance(name, str)}


def _under_key(checkpoint: Checkpoint, key: str) -> Weights:
    node, path = checkpoint.root, ()
    rest: str | None = key
    while rest is not None and node is not None:
        step = _step(node, rest)
        if step is None:
            break
        name, node, rest = step
        path = (*path, *name)
    if rest is not None:
        raise UsageError(
            f"{checkpoint.path}: has no key {key}", f"keys: {', '.join(_keys(node)) or 'none'}"
        )
    tensors = _below(checkpoint, path)
    found = _of_module(tensors, path, node) if is_module(node) else _of_dict(tensors, path)
    if not found.tensors:
        raise InputError(f"{checkpoint.path}: {key} holds no tensors", "give the key of a dict")
    return found


def _step(node: Node, key: str) -> tuple[Path, Node, str | None] | None:
    """Return the child that a dotted key begins with, and what is left of the key."""
    inner = node.state if isinstance(node, Call) and isinstance(node.state, Dict) else node
    above: Path = ("@state",) if inner is not node else ()
    for name, child in children(inner):
        text = str(name)
        if key == text:
            return (*above, name), child, None
        if key.startswith(f"{text}."):
            return (*above, name), child, key[len(text) + 1 :]
    return None


def _keys(node: Node, limit: int = 10) -> list[str]:
    keys = [str(key) for key, _ in children(node) if isinstance(key, (str, int))]
    return [*keys[:limit], "..."] if len(keys) > limit else keys
