"""The state dict of a TorchScript module: its own code tells which attributes belong to it.

Source: torch/csrc/jit/serialization/python_print.cpp, which lists the names in each class, and
torch.nn.Module._save_to_state_dict.
"""

import re
from collections.abc import Sequence

from pttool.core.ckpt.files.payload import read_record
from pttool.core.ckpt.pickles.nodes import Call, Dict, Node
from pttool.core.ckpt.types import Checkpoint, Record, Tensor
from pttool.core.ckpt.weights.state_dicts import Weights
from pttool.errors import InputError

LARGEST_CODE = 1 << 26
_CLASS = re.compile(
    r"^class (\w+)\(Module\):\n  __parameters__ = \[(.*)\]\n  __buffers__ = \[(.*)\]$", re.MULTILINE
)
_NAME = re.compile(r'"([^"]+)"')


def script_weights(checkpoint: Checkpoint) -> Weights:
    """Return the parameters and buffers of a module and, after them, of those within it.

    Raises InputError where the archive holds no such lists, as one for mobile devices does.
    """
    belongs = _names_by_class(checkpoint)
    found: list[tuple[str, Tensor]] = []

    def visit(node: Node, tensors: Sequence[Tensor], depth: int, prefix: str) -> None:
        """Go where tensors are, since modules can be shared without end."""
        if not isinstance(node, Call) or not isinstance(node.state, Dict):
            return
        if node.path not in belongs:
            what = "its code doesn't tell which of its tensors are parameters or buffers"
            raise InputError(f"{checkpoint.path}: {what}", "save the module's state_dict() instead")
        own, below = _in_state(tensors, depth)
        found.extend((f"{prefix}{name}", own[name]) for name in belongs[node.path] if name in own)
        children = {name: child for name, child in node.state.pairs if isinstance(name, str)}
        for name, child in children.items():
            if isinstance(child, Call) and child.path.startswith("__torch__.") and name in below:
                visit(child, below[name], depth + 2, f"{prefix}{name}.")

    visit(checkpoint.root, list({t.path: t for t in checkpoint.tensors}.values()), 0, "")
    if not found:
        raise InputError(f"{checkpoint.path}: holds no weights", "inspect tells what it holds")
    return Weights((), tuple(found))


def _in_state(
    tensors: Sequence[Tensor], depth: int
) -> tuple[dict[Node, Tensor], dict[Node, list[Tensor]]]:
    """Return the tensors that are attributes of a module, and those below each attribute."""
    own: dict[Node, Tensor] = {}
    below: dict[Node, list[Tensor]] = {}
    for tensor in tensors:
        place = tensor.path[depth : depth + 2]
        if len(place) < 2 or place[0] != "@state":
            continue
        if len(tensor.path) == depth + 2:
            own[place[1]] = tensor
        else:
            below.setdefault(place[1], []).append(tensor)
    return own, below


def _names_by_class(checkpoint: Checkpoint) -> dict[str, list[str]]:
    """Return the names of parameters, then of buffers, by the dotted name of a class."""
    found = {}
    for record in checkpoint.records:
        _, _, place = record.name.partition("/code/")
        if place.endswith(".py"):
            module = place.removesuffix(".py").replace("/", ".")
            for name, parameters, buffers in _CLASS.findall(_code(record)):
                found[f"{module}.{name}"] = _NAME.findall(parameters) + _NAME.findall(buffers)
    return found


def _code(record: Record) -> str:
    return read_record(record, LARGEST_CODE).decode("utf-8", "replace")
