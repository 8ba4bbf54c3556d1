"""The state dict of a TorchScript module: its own code tells which attributes belong to it.

Source: torch/csrc/jit/serialization/python_print.cpp, which lists the names in each class, and
torch.nn.Module._save_to_state_dict.
"""

import re

from pttool.core.ckpt.files.payload import read_record
from pttool.core.ckpt.pickles.nodes import Call, Dict, Node
from pttool.core.ckpt.types import Checkpoint, Record, Tensor
from pttool.core.ckpt.weights.state_dicts import DEEPEST_MODULE, Weights
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
    by_path = {tensor.path: tensor for tensor in checkpoint.tensors}
    found: list[tuple[str, Tensor]] = []

    def visit(node: Node, path: tuple[Node, ...], prefix: str) -> None:
        if not isinstance(node, Call) or not isinstance(node.state, Dict):
            return
        if node.path not in belongs:
            what = "its code doesn't tell which of its tensors are parameters or buffers"
            raise InputError(f"{checkpoint.path}: {what}", "save the module's state_dict() instead")
        for name in belongs[node.path]:
            tensor = by_path.get((*path, "@state", name))
            if tensor is not None:
                found.append((f"{prefix}{name}", tensor))
        for name, child in node.state.pairs if len(path) < DEEPEST_MODULE else ():
            if isinstance(child, Call) and child.path.startswith("__torch__."):
                visit(child, (*path, "@state", name), f"{prefix}{name}.")

    visit(checkpoint.root, (), "")
    if not found:
        raise InputError(f"{checkpoint.path}: holds no weights", "inspect tells what it holds")
    return Weights((), tuple(found))


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
