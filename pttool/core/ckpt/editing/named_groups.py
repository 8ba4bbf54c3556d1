"""The dicts of a checkpoint whose keys name parameters: state dicts, and optimizers' states."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pttool.core.ckpt.editing.editable import Editable
from pttool.core.ckpt.pickles.nodes import List, Node, Text
from pttool.core.ckpt.tensors.paths import MODULE_PARTS, dotted
from pttool.core.ckpt.types import Tensor, Value
from pttool.core.ckpt.weights.state_dicts import OTHER_KEYS

METADATA = ("@state", "_metadata")

Place = tuple[Node, ...]


@dataclass(slots=True)
class Group:
    """The keys of one dict: those that name parameters (in order, and `known` by their texts),
    those of its metadata, and all others.
    """

    path: Place
    names: list[Text] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    metadata: list[Text] = field(default_factory=list)
    others: set[str] = field(default_factory=set)

    @property
    def title(self) -> str:
        """Its dotted name."""
        return dotted(self.path)

    @property
    def is_state_dict(self) -> bool:
        """Whether it holds tensors alone, and none of a module or an optimizer."""
        keys = [str(key) for key in self.path]
        is_other = any(other in key for key in keys for other in OTHER_KEYS)
        return not (self.others or is_other or (keys and keys[-1] in MODULE_PARTS))


def groups(opened: Editable) -> list[Group]:
    """Return the groups in the order in which they are met, each with its keys in order."""
    found: dict[Place, Group] = {}
    for tensor in opened.tensors:
        for index in _naming(tensor.path):
            group = found.setdefault(tensor.path[:index], Group(tensor.path[:index]))
            if not group.names or group.names[-1].at != tensor.path[index].at:
                group.names.append(tensor.path[index])
                group.known.add(str(tensor.path[index]))
    leaves: tuple[Tensor | Value, ...] = (*opened.tensors, *opened.values)
    for leaf in leaves:
        for index, key in enumerate(leaf.path):
            group_here = found.get(leaf.path[:index])
            if group_here is not None:
                _note_other(group_here, leaf, index, key)
    return list(found.values())


def texts_in_lists(opened: Editable) -> Iterator[Text]:
    """Yield the names that an optimizer's param_groups list."""
    for value in opened.values:
        if value.path and value.path[-1] == "params" and isinstance(value.node, List):
            yield from (item for item in value.node.items if isinstance(item, Text))


def _naming(path: Place) -> Iterator[int]:
    """Yield where in a tensor's path a parameter is named: at its end, or below "state"."""
    for index, key in enumerate(path):
        is_last = index == len(path) - 1
        is_in_optimizer = index > 0 and path[index - 1] == "state"
        if isinstance(key, Text) and (is_last or is_in_optimizer):
            yield index


def _note_other(group: Group, leaf: Tensor | Value, index: int, key: Node) -> None:
    if leaf.path[index : index + 2] == METADATA:
        name = leaf.path[index + 2] if len(leaf.path) > index + 2 else None
        known = group.metadata and isinstance(name, Text) and group.metadata[-1].at == name.at
        if isinstance(name, Text) and not known:
            group.metadata.append(name)
    elif isinstance(key, str) and key != "@state" and key not in group.known:
        group.others.add(str(key))
