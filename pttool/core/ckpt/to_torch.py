"""`to_torch`: a safetensors file, or any weights, as a file that torch.load takes."""

from pathlib import Path

from pttool.core.ckpt.extract import report
from pttool.core.ckpt.files.new_files import new_file
from pttool.core.ckpt.to_safetensors import inherited
from pttool.core.ckpt.weights.layout import Named, laid_out
from pttool.core.ckpt.weights.selection import Selection, select
from pttool.core.ckpt.writing.state_dict import write_state_dict
from pttool.core.report import Report


def to_torch(path: Path, out: Path) -> Report:
    """Write weights as torch.save would write their state dict.

    Names that the metadata of a safetensors file says are tied to another come back, with the
    same elements. Raises as `extract` does.
    """
    selection = select(path)
    tensors = with_tied(selection)
    with new_file(out) as stream:
        write_state_dict(stream, laid_out(tensors), stem=out.stem)
    return report(selection, tensors, out, selection.notes)


def with_tied(selection: Selection) -> tuple[Named, ...]:
    """Return the tensors, and those which safetensors' metadata says are one of them again."""
    known = dict(selection.tensors)
    tied = [
        (name, known[kept])
        for name, kept in inherited(selection).items()
        if kept in known and name not in known
    ]
    return (*selection.tensors, *tied)
