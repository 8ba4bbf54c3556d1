"""The rows of a summary: the tree of calls, with every parameter counted at its first one."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from pttool.core.model.names import own_parameters
from pttool.core.model.trace import Call


@dataclass(slots=True)
class Row:
    """One call of a module, or a module that was never called but holds parameters."""

    module: nn.Module
    name: str
    calls: int
    input_shape: Any = None
    output_shape: Any = None
    flops: int = 0
    params: int = 0
    trainable_params: int = 0
    children: list["Row"] = field(default_factory=list)

    def in_order(self) -> Iterator[tuple[int, "Row"]]:
        """Yield (depth, row) for this row and all below it, in order of execution."""
        stack = [(0, self)]
        while stack:
            level, row = stack.pop()
            yield level, row
            stack += [(level + 1, child) for child in reversed(row.children)]


def tree(model: nn.Module, root: Call | None) -> Row:
    """Return the root row.

    A row's parameters are those whose first use lies in its call, so that each tensor counts once
    and a row equals its own tensors plus its children. Modules that hold parameters but were never
    called hang below the nearest module that was.
    """
    counts: Counter[int] = Counter()
    if root is not None:
        counts.update(id(call.module) for call in _calls(root))
        top = _row(root, counts)
    else:
        top = Row(model, "", 0)
    seen: set[int] = set()
    _claim_called(top, seen)
    _add_uncalled(model, top, counts, seen)
    _sum_up(top)
    return top


def item(depth: int, row: Row) -> dict[str, Any]:
    """Return a row as the item of a report."""
    return {
        "name": row.name,
        "type": type(row.module).__name__,
        "depth": depth,
        "calls": row.calls,
        "input_shape": row.input_shape,
        "output_shape": row.output_shape,
        "params": row.params,
        "trainable_params": row.trainable_params,
        "macs": row.flops // 2,
        "kernel_size": kernel_size(row.module),
    }


def kernel_size(module: nn.Module) -> list[int] | None:
    """Return a convolution's or pool's kernel size, one number a dimension, or None."""
    size = vars(module).get("kernel_size")
    if isinstance(size, int):
        return [size] * _dimensions(module)
    if isinstance(size, tuple) and all(isinstance(length, int) for length in size):
        return list(size)
    return None


def _dimensions(module: nn.Module) -> int:
    """Return in how many dimensions a pool or unfolding works, by the name of torch's class."""
    for cls in type(module).__mro__:
        dimensions = re.search(r"([123])d$", cls.__name__)
        if dimensions:
            return int(dimensions[1])
    return 2 if isinstance(module, nn.Fold | nn.Unfold) else 1


def _calls(root: Call) -> Iterator[Call]:
    stack = [root]
    while stack:
        call = stack.pop()
        yield call
        stack += call.children


def _row(root: Call, counts: Counter[int]) -> Row:
    def shallow(call: Call) -> Row:
        calls = counts[id(call.module)]
        return Row(call.module, call.name, calls, call.input_shape, call.output_shape, call.flops)

    top = shallow(root)
    stack = [(root, top)]
    while stack:
        call, row = stack.pop()
        row.children = [shallow(child) for child in call.children]
        stack += zip(call.children, row.children, strict=True)
    return top


def _claim_called(top: Row, seen: set[int]) -> None:
    for _, row in top.in_order():
        _claim(row, seen)


def _claim(row: Row, seen: set[int]) -> None:
    """Count the tensors that a row's module holds itself and no earlier row has counted."""
    for _, parameter in own_parameters(row.module):
        if parameter is None or id(parameter) in seen or is_lazy(parameter):
            continue
        seen.add(id(parameter))
        row.params += parameter.numel()
        row.trainable_params += parameter.numel() if parameter.requires_grad else 0


def _add_uncalled(model: nn.Module, top: Row, counts: Counter[int], seen: set[int]) -> None:
    first: dict[str, Row] = {}
    for _, row in top.in_order():
        first.setdefault(row.name, row)
    for name, module in model.named_modules():
        holds = any(id(p) not in seen for p in module._parameters.values() if p is not None)
        if holds and not counts[id(module)]:
            row = Row(module, name, 0)
            _claim(row, seen)
            _nearest(name, first, top).children.append(row)


def _nearest(name: str, first: dict[str, Row], top: Row) -> Row:
    while name:
        name = name.rpartition(".")[0]
        if name in first:
            return first[name]
    return top


def _sum_up(top: Row) -> None:
    for _, row in reversed(list(top.in_order())):
        row.params += sum(child.params for child in row.children)
        row.trainable_params += sum(child.trainable_params for child in row.children)
