"""`to_safetensors`: the weights of a checkpoint as a safetensors file."""

from pathlib import Path

from pttool.core.ckpt.files.disks import check_room
from pttool.core.ckpt.weights.selection import select
from pttool.core.ckpt.writing.report import report
from pttool.core.ckpt.writing.safetensors import (
    FOR_TORCH,
    entries_of,
    sharing_notes,
    tied_names,
    write_safetensors,
)
from pttool.core.files import written
from pttool.core.report import Report


def to_safetensors(
    path: Path,
    out: Path,
    *,
    key: str | None = None,
    filter: str | None = None,
) -> Report:
    """Write the weights of a checkpoint as safetensors, in bounded memory.

    Which ones is told as in `extract`. Tensors that are the same elements are kept once, under
    the first name; the others are recorded in the metadata, name to kept name, as
    safetensors.torch.save_model does. Tensors that overlap otherwise get a copy each. Raises
    InputError as `extract` does, and for sparse, quantized and meta tensors; UsageError and
    UnavailableError as there.
    """
    selection = select(path, key=key, glob=filter)
    tied = tied_names(selection.tensors)
    kept = [named for named in selection.tensors if named[0] not in tied]
    entries = entries_of(kept, path)
    said = {**selection.metadata, **tied, **FOR_TORCH}
    check_room(out, sum(entry.size_bytes for entry in entries))
    with written(out, path) as stream:
        write_safetensors(stream, entries, said, path)
    notes = (*selection.notes, *sharing_notes(tied, kept))
    return report(selection, kept, out, notes)
