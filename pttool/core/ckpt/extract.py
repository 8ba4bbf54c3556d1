"""`extract`: only the weights of a checkpoint, as a state dict that loads anywhere."""

from collections.abc import Sequence
from pathlib import Path

from pttool.core.ckpt.files.new_files import new_file
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import count
from pttool.core.ckpt.types import Tensor
from pttool.core.ckpt.weights.layout import Layout, Named, distinct, laid_out
from pttool.core.ckpt.weights.selection import (
    SPARSE,
    Selection,
    input_bytes,
    left_out_note,
    select,
    unwritable,
    without,
)
from pttool.core.ckpt.writing.state_dict import write_state_dict
from pttool.core.report import Column, Item, Report

COLUMNS = (
    Column("key", "Key"),
    Column("shape", "Shape", "shape"),
    Column("dtype", "Type"),
    Column("numel", "Elements", "count"),
    Column("size_bytes", "Size", "bytes"),
)
FIELDS = tuple(column.key for column in COLUMNS)
# A storage may be rounded up, or have gaps for alignment.
WORTH_SAYING = 1.1
FOOTER = (
    Column("tensors", "Tensors", "count"),
    Column("parameters", "Elements", "count"),
    Column("size_bytes", "File", "bytes"),
    Column("saved_bytes", "Saved", "bytes"),
    Column("dropped", "Left behind", "list"),
)


def extract(
    path: Path,
    out: Path,
    *,
    key: str | None = None,
    filter: str | None = None,
    compact: bool = False,
) -> Report:
    """Write the weights of a checkpoint as an OrderedDict of plain tensors on the CPU.

    A module's are those of its state_dict(), in its order; else the likeliest dict, or the one at
    a dotted `key`; of these, the names that match the glob `filter`. Storages are copied whole,
    or if `compact` cut to what tensors use. Quantized, nested and meta tensors are left out, said
    in a note. Raises InputError for a checkpoint without weights or with damaged ones, UsageError
    for a key or glob without a match, UnavailableError for a full disk.
    """
    selection = select(path, key=key, glob=filter)
    left_out = [named for named in selection.tensors if not is_writable(named)]
    tensors = without(selection, left_out)
    layout = laid_out(tensors, compact=compact)
    with new_file(out) as stream:
        write_state_dict(stream, layout, stem=out.stem)
    notes = (
        *selection.notes,
        *left_out_note(left_out),
        *([] if compact else _bloat(layout, tensors)),
    )
    return report(selection, tensors, out, notes)


def is_writable(named: Named) -> bool:
    """Whether a torch file can hold a tensor: a strided one, or a sparse one as its parts."""
    tensor = named[1]
    return tensor.layout in SPARSE or unwritable(tensor) is None


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


def _bloat(layout: Layout, tensors: Sequence[Named]) -> tuple[str, ...]:
    """Return what to say where storages are much larger than what tensors use of them."""
    used = sum(count(tensor) * item_bytes(tensor.dtype) for tensor in distinct(tensors))
    if layout.size_bytes <= used * WORTH_SAYING:
        return ()
    spare = layout.size_bytes - laid_out(tensors, compact=True).size_bytes
    return (f"{spare:,} bytes of the storages are used by no tensor: --compact leaves them out",)
