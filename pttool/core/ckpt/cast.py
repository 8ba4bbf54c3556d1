"""`cast`: floating weights in another type."""

from dataclasses import replace
from pathlib import Path

from pttool.core.ckpt.files.disks import check_room
from pttool.core.ckpt.weights.casting import Casting, floating_type, one_thread
from pttool.core.ckpt.weights.layout import Named, laid_out
from pttool.core.ckpt.weights.selection import (
    Selection,
    filtered,
    is_safetensors,
    is_writable,
    left_out_note,
    select,
    without,
)
from pttool.core.ckpt.writing.report import report
from pttool.core.ckpt.writing.safetensors import (
    FOR_TORCH,
    entries_of,
    sharing_notes,
    tied_names,
    write_safetensors,
)
from pttool.core.ckpt.writing.state_dict import write_state_dict
from pttool.core.files import written
from pttool.core.report import Report

SAFETENSORS_SUFFIX = ".safetensors"
TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")


def cast(
    path: Path, dtype: str, out: Path, *, key: str | None = None, filter: str | None = None
) -> Report:
    """Write the weights of a checkpoint, those of floating types as `dtype`.

    Which ones is told as in `extract`; only names that match the glob `filter` are cast. Integers,
    booleans and complex numbers stay. The suffix of `out` decides between torch and safetensors,
    else the input's format. Numbers that overflow are counted in a note for each tensor. Raises as
    `extract` does, UsageError for no floating type, UnavailableError without torch.
    """
    target = floating_type(dtype)
    selection = select(path, key=key)
    chosen = selection.tensors if filter is None else filtered(selection.tensors, filter)
    casting = Casting(frozenset(name for name, _ in chosen), target)
    write = _write_safetensors if _is_safetensors(selection, out) else _write_torch
    with one_thread():
        tensors, notes = write(selection, casting, out)
    lost = [
        f"{name}: {count:,} elements are beyond {target}"
        for name, count in casting.overflows.items()
    ]
    return report(selection, tensors, out, (*selection.notes, *notes, *lost))


def _is_safetensors(selection: Selection, out: Path) -> bool:
    if out.suffix in TORCH_SUFFIXES:
        return False
    return out.suffix == SAFETENSORS_SUFFIX or is_safetensors(selection.checkpoint)


def _write_torch(
    selection: Selection, casting: Casting, out: Path
) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    left_out = [named for named in selection.tensors if not is_writable(named)]
    tensors = without(selection, left_out)
    layout = laid_out(tensors, compact=True, casting=casting)
    with written(out, selection.checkpoint.path) as stream:
        write_state_dict(stream, layout, stem=out.stem)
    return layout.tensors, left_out_note(left_out)


def _write_safetensors(
    selection: Selection, casting: Casting, out: Path
) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    tied = tied_names(selection.tensors)
    kept = [named for named in selection.tensors if named[0] not in tied]
    entries = entries_of(kept, selection.checkpoint.path, casting)
    check_room(out, sum(entry.size_bytes for entry in entries))
    metadata = {**selection.metadata, **tied, **FOR_TORCH}
    with written(out, selection.checkpoint.path) as stream:
        write_safetensors(stream, entries, metadata, selection.checkpoint.path)
    dtypes = {entry.name: entry.dtype for entry in entries}
    cast_to = tuple((name, replace(tensor, dtype=dtypes[name])) for name, tensor in kept)
    return cast_to, sharing_notes(tied, kept)
