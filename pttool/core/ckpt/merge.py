"""`merge`: the shards under an index in one file."""

from pathlib import Path

from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.to_safetensors import to_safetensors
from pttool.core.ckpt.to_torch import to_torch
from pttool.core.ckpt.types import Format
from pttool.core.report import Report
from pttool.errors import UsageError

SUFFIX = ".safetensors"


def merge(path: Path, out: Path) -> Report:
    """Write the tensors of all shards of an index, given as that file or as its folder.

    The suffix of `out` decides: .safetensors, or anything else for a torch file. Raises UsageError
    for a path that is no index, and as `to_safetensors` and `to_torch` do.
    """
    if recognise(path) is not Format.SHARDED:
        raise UsageError(f"{path}: is not sharded", "give a *.index.json or its folder")
    return to_safetensors(path, out) if out.suffix == SUFFIX else to_torch(path, out)
