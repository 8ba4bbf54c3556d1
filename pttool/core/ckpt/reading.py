"""Open a checkpoint of any kind: what it holds, without running it or reading its tensors."""

import importlib
from collections.abc import Callable
from pathlib import Path

from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.types import Checkpoint, Format

# Each is imported when a file of its kind is met: most runs meet one.
OPENERS = {
    Format.TORCH_ZIP: ("torch_zip", "open_torch_zip"),
    Format.TORCHSCRIPT: ("torch_zip", "open_torchscript"),
    Format.EXPORTED: ("exported", "open_exported"),
    Format.TORCH_LEGACY: ("legacy", "open_legacy"),
    Format.TORCH_TAR: ("legacy_tar", "open_legacy_tar"),
    Format.SAFETENSORS: ("safetensors", "open_safetensors"),
    Format.DISTRIBUTED: ("distributed", "open_distributed"),
    Format.NPZ: ("numpy_files", "open_npz"),
    Format.NPY: ("numpy_files", "open_npy"),
    Format.PICKLE: ("raw_pickle", "open_raw_pickle"),
}


def read(path: Path) -> Checkpoint:
    """Return what a file or folder holds.

    Raises InputError for what is missing, damaged, cut short, or no checkpoint, saying which.
    """
    kind = recognise(path)
    if kind is Format.SHARDED:
        from pttool.core.ckpt.containers.sharded import open_sharded

        return open_sharded(path, read)
    module, function = OPENERS[kind]
    container = importlib.import_module(f"pttool.core.ckpt.containers.{module}")
    opener: Callable[[Path], Checkpoint] = getattr(container, function)
    return opener(path)
