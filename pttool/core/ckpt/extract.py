"""`extract`: only the weights of a checkpoint, as a state dict that loads anywhere."""

from collections.abc import Sequence
from pathlib import Path

from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import count
from pttool.core.ckpt.weights.layout import Layout, Named, distinct, laid_out
from pttool.core.ckpt.weights.selection import is_writable, left_out_note, select, without
from pttool.core.ckpt.writing.report import report
from pttool.core.ckpt.writing.state_dict import write_state_dict
from pttool.core.files import written
from pttool.core.report import Report

# A storage may be rounded up, or have gaps for alignment.
WORTH_SAYING = 1.1


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
    with written(out, path) as stream:
        write_state_dict(stream, layout, stem=out.stem)
    notes = (
        *selection.notes,
        *left_out_note(left_out),
        *([] if compact else _bloat(layout, tensors)),
    )
    return report(selection, tensors, out, notes)


def _bloat(layout: Layout, tensors: Sequence[Named]) -> tuple[str, ...]:
    """Return what to say where storages are much larger than what tensors use of them."""
    used = sum(count(tensor) * item_bytes(tensor.dtype) for tensor in distinct(tensors))
    if layout.size_bytes <= used * WORTH_SAYING:
        return ()
    spare = layout.size_bytes - laid_out(tensors, compact=True).size_bytes
    return (f"{spare:,} bytes of the storages are used by no tensor: --compact leaves them out",)
