"""Upper bounds for operators whose result depends on values, which meta tensors don't have.

A detector keeps as many boxes as its scores say. On meta every box counts as kept, so what runs on
them afterwards is counted at its most.
"""

from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
NOT_DATA_DEPENDENT = object()


def largest_result(func: Any, args: tuple[Any, ...]) -> Any:
    """Return the largest result that a data-dependent operator can have on meta tensors.

    Everything is nonzero, no box is suppressed, an element is 1 or True, all are the same. Returns
    NOT_DATA_DEPENDENT for any other operator.
    """
    first = args[0] if args else None
    if not (isinstance(first, Tensor) and first.is_meta):
        return NOT_DATA_DEPENDENT
    match str(func._overloadpacket):
        case "aten.nonzero":
            return _indices(first.numel(), first.ndim)
        case "torchvision.nms":
            return _indices(first.shape[0])
        case "aten._local_scalar_dense":
            return True if first.dtype is torch.bool else 1
        case "aten._unique2":
            return first.new_empty(1), _indices(1), _indices(1)
        case "aten.index" if any(map(_is_mask, args[1])):
            return func(first, _all_selected(args[1]))
    return NOT_DATA_DEPENDENT


def _indices(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.int64, device="meta")


def _is_mask(index: Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _all_selected(indices: list[Tensor | None]) -> list[Tensor | None]:
    """Replace a mask by one index for each of its dimensions, which select all of its elements."""
    selected: list[Tensor | None] = []
    for index in indices:
        if index is not None and _is_mask(index):
            selected += [_indices(index.numel())] * index.ndim
        else:
            selected.append(index)
    return selected
