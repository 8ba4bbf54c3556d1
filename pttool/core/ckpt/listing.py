"""The rows of what a checkpoint holds: tensors, values, and groups of them."""

import math
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from pttool.core.ckpt.pickles.nodes import Call
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import is_contiguous
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.tensors.values import array_type, in_words, json_value, type_name
from pttool.core.ckpt.types import Checkpoint, Tensor, Value

FIELDS = (
    "file", "key", "kind", "type", "shape", "dtype", "device", "numel", "size_bytes", "stride",
    "offset", "storage", "shared_with", "requires_grad", "role", "layout", "chunks", "value",
)  # fmt: skip
EMPTY = dict.fromkeys(FIELDS)
# What a state dict doesn't tell: torch's own layers keep these as buffers.
BUFFER_NAMES = ("running_mean", "running_var", "num_batches_tracked")

Row = dict[str, Any]


def rows(
    checkpoint: Checkpoint, pattern: str | None = None
) -> Iterator[tuple[Tensor | Value, Row]]:
    """Yield each tensor and value whose dotted name matches the glob, in order, and its row."""
    first: dict[str, str] = {}
    for leaf in checkpoint.leaves or (*checkpoint.tensors, *checkpoint.values):
        if isinstance(leaf, Value) and _is_bookkeeping(leaf):
            continue
        name = name_of(leaf)
        shared_with = None
        if isinstance(leaf, Tensor) and leaf.storage is not None:
            owner = first.setdefault(leaf.storage.key, name)
            shared_with = owner if owner != name else None
        if pattern is None or fnmatchcase(name, pattern):
            row = tensor_row(leaf, name) if isinstance(leaf, Tensor) else _value_row(leaf, name)
            yield leaf, {**EMPTY, **row, "shared_with": shared_with}


def tensor_row(tensor: Tensor, name: str) -> Row:
    """Return what a tensor is, without its file."""
    numel = math.prod(tensor.shape) if -1 not in tensor.shape else None
    return {
        "key": name,
        "kind": "tensor",
        "type": _class_of(tensor),
        "shape": [None if size == -1 else size for size in tensor.shape],
        "dtype": tensor.dtype,
        "device": tensor.device,
        "numel": numel,
        "size_bytes": needed_bytes(tensor),
        "stride": list(tensor.stride),
        "offset": tensor.offset,
        "storage": None if tensor.storage is None else tensor.storage.key,
        "requires_grad": tensor.requires_grad,
        "role": _role(tensor, name),
        "layout": tensor.layout,
        "chunks": _chunks(tensor),
        "shown": f"[{','.join(map(str, tensor.shape))}]",
        "is_contiguous": tensor.layout != "strided" or is_contiguous(tensor),
    }


def needed_bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor's elements, or of those of its parts."""
    if tensor.layout != "strided" and tensor.parts:
        return sum(needed_bytes(part) for part in tensor.parts)
    return math.prod(tensor.shape) * item_bytes(tensor.dtype) if tensor.layout != "meta" else 0


def grouped(found: Iterable[Row], depth: int | None) -> list[Row]:
    """Return the rows as a tree: the first segments of names, down to a depth, with their sums."""
    tree: dict[tuple[str, ...], Row] = {}
    for row in found:
        parts = (row["file"], *row["key"].split("."))
        top = len(parts) if depth is None else min(len(parts), depth + 2)
        for level in range(2, top):
            group = tree.setdefault(parts[:level], _group(row, parts[1:level]))
            group["numel"] += row["numel"] or 0
            group["size_bytes"] += row["size_bytes"] or 0
        if depth is None or len(parts) - 1 <= depth:
            tree[parts] = {**row, "depth": len(parts) - 2}
    return list(tree.values())


def _is_bookkeeping(value: Value) -> bool:
    """Whether a value is a state dict's versions, or an empty private attribute of an object."""
    if "_metadata" in value.path and "@state" in value.path:
        return True
    name = value.path[-1] if value.path else None
    return isinstance(name, str) and name.startswith("_") and not json_value(value.node)


def _group(row: Row, parts: tuple[str, ...]) -> Row:
    return {
        **EMPTY,
        "file": row["file"],
        "key": ".".join(parts),
        "kind": "group",
        "numel": 0,
        "size_bytes": 0,
        "depth": len(parts) - 1,
    }


def _value_row(value: Value, name: str) -> Row:
    node = value.node
    row: Row = {
        "key": name,
        "kind": "value",
        "type": type_name(node),
        "value": json_value(node),
        "shown": in_words(node),
    }
    array = array_type(node) if isinstance(node, Call) else None
    if array is not None:
        dtype, shape = array
        numel = math.prod(shape)
        size = numel * item_bytes(dtype)
        row |= {"dtype": dtype, "shape": list(shape), "numel": numel, "size_bytes": size or None}
    return row


def _class_of(tensor: Tensor) -> str:
    if tensor.subclass is not None:
        return tensor.subclass
    return "Parameter" if tensor.role == "parameter" else "Tensor"


def _role(tensor: Tensor, name: str) -> str | None:
    """Return what a tensor is in a module: told by its class, its place, or a usual name."""
    if tensor.role is not None:
        return tensor.role
    if "_buffers" in tensor.path or name.rpartition(".")[2] in BUFFER_NAMES:
        return "buffer"
    return None


def _chunks(tensor: Tensor) -> list[Row] | None:
    """Return where the chunks of a distributed tensor lie."""
    if tensor.layout != "strided" or not tensor.parts:
        return None
    return [
        {
            "offsets": list(part.path[0]),
            "shape": list(part.shape),
            "file": record.file.name,
            "offset": record.offset,
            "size_bytes": record.stored_bytes,
        }
        for part in tensor.parts
        if part.storage is not None and (record := part.storage.record) is not None
    ]
