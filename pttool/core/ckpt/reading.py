"""Open a checkpoint of any kind: what it holds, without running it or reading its tensors."""

from pathlib import Path

from pttool.core.ckpt.containers.distributed import open_distributed
from pttool.core.ckpt.containers.exported import open_exported
from pttool.core.ckpt.containers.legacy import open_legacy
from pttool.core.ckpt.containers.legacy_tar import open_legacy_tar
from pttool.core.ckpt.containers.numpy_files import open_npy, open_npz
from pttool.core.ckpt.containers.raw_pickle import open_raw_pickle
from pttool.core.ckpt.containers.safetensors import open_safetensors
from pttool.core.ckpt.containers.sharded import open_sharded
from pttool.core.ckpt.containers.torch_zip import open_torch_zip
from pttool.core.ckpt.formats import recognise
from pttool.core.ckpt.types import Checkpoint, Format


def read(path: Path) -> Checkpoint:
    """Return what a file or folder holds.

    Raises InputError for what is missing, damaged, cut short, or no checkpoint, saying which.
    """
    match recognise(path):
        case Format.TORCH_ZIP:
            return open_torch_zip(path)
        case Format.TORCHSCRIPT:
            return open_torch_zip(path, Format.TORCHSCRIPT)
        case Format.EXPORTED:
            return open_exported(path)
        case Format.TORCH_LEGACY:
            return open_legacy(path)
        case Format.TORCH_TAR:
            return open_legacy_tar(path)
        case Format.SAFETENSORS:
            return open_safetensors(path)
        case Format.SHARDED:
            return open_sharded(path, read)
        case Format.DISTRIBUTED:
            return open_distributed(path)
        case Format.NPZ:
            return open_npz(path)
        case Format.NPY:
            return open_npy(path)
        case Format.PICKLE:
            return open_raw_pickle(path)
