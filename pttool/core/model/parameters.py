"""Count parameters and buffers, each tensor once: `params` and the totals of `summary`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from pttool.core.model.fields import Sort
from pttool.core.model.names import NamedTensor, buffers_by_name, parameters_by_name
from pttool.core.model.resolve import Resolved
from pttool.core.report import Column, Report

FOOTER = (
    Column("params", "Parameters", "count"),
    Column("trainable_params", "Trainable", "count"),
    Column("frozen_params", "Frozen", "count"),
    Column("buffers", "Buffers", "count"),
    Column("param_bytes", "Parameter memory", "bytes"),
    Column("buffer_bytes", "Buffer memory", "bytes"),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which parameters `params` lists. `globs` match whole names; an empty one matches all."""

    globs: Sequence[str] = ()
    trainable: bool = True
    frozen: bool = True

    def takes(self, named: NamedTensor) -> bool:
        """Tell whether a parameter is listed; one of its names is enough."""
        if not (self.trainable if named.tensor.requires_grad else self.frozen):
            return False
        names = (named.name, *named.aliases)
        return not self.globs or any(fnmatchcase(n, glob) for n in names for glob in self.globs)


def params(
    resolved: Resolved, selection: Selection, *, sort: Sort | None = None, by_module: bool = False
) -> Report:
    """Return every parameter of a model, or its sum in each module that holds any.

    The totals are those of the parameters listed; buffers are counted apart and in full.
    """
    listed = [named for named in parameters_by_name(resolved.module) if selection.takes(named)]
    items = _by_module(resolved.module, listed) if by_module else list(map(_item, listed))
    if sort is not None:
        items.sort(key=_sort_key(sort))
    columns = _MODULE_COLUMNS if by_module else _COLUMNS
    summary = {
        "model": resolved.name,
        "source": resolved.source,
        "device": resolved.device,
        **totals(listed, buffers_by_name(resolved.module)),
    }
    return Report(
        tuple(column.key for column in columns),
        columns,
        items,
        summary,
        FOOTER,
        _notes(selection, listed),
    )


def totals(parameters: Sequence[NamedTensor], buffers: Sequence[NamedTensor]) -> dict[str, Any]:
    """Return the counts (elements) and bytes of parameters and buffers, and who is shared."""
    known = [named for named in parameters if not is_lazy(named.tensor)]
    known_buffers = [named for named in buffers if not is_lazy(named.tensor)]
    return {
        "params": numel(known),
        "trainable_params": numel([named for named in known if named.tensor.requires_grad]),
        "frozen_params": numel([named for named in known if not named.tensor.requires_grad]),
        "buffers": numel(known_buffers),
        "param_bytes": _bytes(known),
        "buffer_bytes": _bytes(known_buffers),
        "shared": [[named.name, *named.aliases] for named in parameters if named.aliases],
    }


_COLUMNS = (
    Column("name", "Name"),
    Column("shape", "Shape", "shape"),
    Column("dtype", "Type", optional=True),
    Column("numel", "Elements", "count"),
    Column("trainable", "Trainable", "flag"),
    Column("bytes", "Size", "bytes", optional=True),
    Column("shared_with", "Shared with", "shape", optional=True),
)
_MODULE_COLUMNS = (
    Column("name", "Module", "text"),
    Column("type", "Type"),
    Column("tensors", "Tensors", "count"),
    Column("numel", "Elements", "count"),
    Column("trainable_numel", "Trainable", "count"),
    Column("bytes", "Size", "bytes"),
)


def _item(named: NamedTensor) -> dict[str, Any]:
    tensor = named.tensor
    known = not is_lazy(tensor)
    return {
        "name": named.name,
        "shape": list(tensor.shape) if known else None,
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "numel": tensor.numel() if known else None,
        "trainable": tensor.requires_grad,
        "bytes": _size(named) if known else None,
        "shared_with": list(named.aliases),
    }


def _by_module(model: nn.Module, listed: Sequence[NamedTensor]) -> list[dict[str, Any]]:
    held: dict[str, list[NamedTensor]] = {}
    for named in listed:
        held.setdefault(named.name.rpartition(".")[0], []).append(named)
    return [
        {
            "name": name,
            "type": type(model.get_submodule(name)).__name__,
            "tensors": len(group),
            "numel": numel(group),
            "trainable_numel": numel([named for named in group if named.tensor.requires_grad]),
            "bytes": _bytes(group),
        }
        for name, group in held.items()
    ]


def _sort_key(sort: Sort) -> Callable[[dict[str, Any]], Any]:
    if sort is Sort.NAME:
        return lambda item: item["name"]
    return lambda item: -(item[sort] or 0)


def _notes(selection: Selection, listed: Sequence[NamedTensor]) -> tuple[str, ...]:
    if not listed and selection != Selection():
        return ("no parameter is selected: globs match whole names, as '*.weight'",)
    return lazy_note(listed)


def lazy_note(parameters: Sequence[NamedTensor]) -> tuple[str, ...]:
    """Return a note on the lazy parameters that no forward has given a shape yet, if any."""
    lazy = sum(is_lazy(named.tensor) for named in parameters)
    if not lazy:
        return ()
    return (
        f"{lazy} lazy parameters are not counted: they have no shape before a forward through "
        "their modules, as `model summary` runs one",
    )


def numel(named: Sequence[NamedTensor]) -> int:
    """Return the elements of all that have a shape."""
    return sum(each.tensor.numel() for each in named if not is_lazy(each.tensor))


def _bytes(named: Sequence[NamedTensor]) -> int:
    return sum(_size(each) for each in named if not is_lazy(each.tensor))


def _size(named: NamedTensor) -> int:
    return named.tensor.numel() * named.tensor.element_size()
