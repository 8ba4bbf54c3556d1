"""`to_torch`: a safetensors file, or any weights, as a file that torch.load takes."""

from pathlib import Path

from pttool.core.ckpt.weights.layout import laid_out
from pttool.core.ckpt.weights.selection import select
from pttool.core.ckpt.writing.report import report
from pttool.core.ckpt.writing.state_dict import write_state_dict
from pttool.core.files import written
from pttool.core.report import Report


def to_torch(path: Path, out: Path) -> Report:
    """Write weights as torch.save would write their state dict. Raises as `extract` does."""
    selection = select(path)
    with written(out, path) as stream:
        write_state_dict(stream, laid_out(selection.tensors), stem=out.stem)
    return report(selection, selection.tensors, out, selection.notes)
