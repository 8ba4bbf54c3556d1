"""`to_safetensors`: the weights of a checkpoint as a safetensors file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pttool.core.ckpt.extract import report
from pttool.core.ckpt.files.new_files import check_room, new_file
from pttool.core.ckpt.formats.archives import listed
from pttool.core.ckpt.weights.layout import Named
from pttool.core.ckpt.weights.selection import Selection, is_safetensors, select
from pttool.core.ckpt.writing.safetensors import (
    entries_of,
    overlapping_names,
    tied_names,
    write_safetensors,
)
from pttool.core.report import Report

FORMAT = {"format": "pt"}
# What the index of a sharded checkpoint says of itself.
OF_THE_INDEX = ("shards", "total_size")


def to_safetensors(
    path: Path,
    out: Path,
    *,
    key: str | None = None,
    filter: str | None = None,
    metadata: Mapping[str, str] | None = None,
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
    said = {**inherited(selection), **tied, **FORMAT, **(metadata or {})}
    check_room(out, sum(entry.size_bytes for entry in entries))
    with new_file(out) as stream:
        write_safetensors(stream, entries, said, path)
    notes = (*selection.notes, *sharing_notes(tied, kept))
    return report(selection, kept, out, notes)


def inherited(selection: Selection) -> dict[str, str]:
    """Return the metadata that a safetensors file already had."""
    facts = selection.checkpoint.facts if is_safetensors(selection.checkpoint) else {}
    return {key: text for key, text in facts.items() if key not in OF_THE_INDEX}


def sharing_notes(tied: Mapping[str, str], kept: Sequence[Named]) -> tuple[str, ...]:
    """Return what to say of tensors that share elements, which the format can't."""
    notes = [f"{name} is {first} again: kept once" for name, first in tied.items()]
    notes += [
        f"{listed(names)} share elements: each has a copy of its own"
        for names in overlapping_names(kept)
    ]
    return tuple(notes)
