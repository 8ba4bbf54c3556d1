"""What was written, as a report of its tensors."""

from collections.abc import Sequence
from pathlib import Path

from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import count
from pttool.core.ckpt.types import Tensor
from pttool.core.ckpt.weights.layout import Named, distinct
from pttool.core.ckpt.weights.selection import Selection, input_bytes
from pttool.core.report import Column, Item, Report

COLUMNS = (
    Column("key", "Key"),
    Column("shape", "Shape", "shape"),
    Column("dtype", "Type"),
    Column("numel", "Elements", "count"),
    Column("size_bytes", "Size", "bytes"),
)
FIELDS = tuple(column.key for column in COLUMNS)
FOOTER = (
    Column("tensors", "Tensors", "count"),
    Column("parameters", "Elements", "count"),
    Column("size_bytes", "File", "bytes"),
    Column("saved_bytes", "Saved", "bytes"),
    Column("dropped", "Left behind", "list"),
)


def report(
    selection: Selection, tensors: Sequence[Named], out: Path, notes: tuple[str, ...]
) -> Report:
    """Return what was written, and what that saved."""
    size = out.stat().st_size
    summary = {
        "file": str(out),
        "tensors": len(tensors),
        "parameters": sum(map(count, distinct(tensors))),
        "size_bytes": size,
        "saved_bytes": input_bytes(selection.checkpoint) - size,
        "dropped": list(selection.dropped),
    }
    items = [item(name, tensor) for name, tensor in tensors]
    return Report(FIELDS, COLUMNS, items, summary, FOOTER, notes)


def item(name: str, tensor: Tensor) -> Item:
    """Return a tensor as a row: sizes in elements and bytes."""
    return {
        "key": name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "numel": count(tensor),
        "size_bytes": count(tensor) * item_bytes(tensor.dtype),
    }
