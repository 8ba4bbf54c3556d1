"""What torch.load, or the library whose format it is, says of the tensors in a checkpoint."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import torch

from tests.core.ckpt import oracle_containers
from tests.core.ckpt.corpus_missing import missing_package
from tests.core.ckpt.oracle_tensors import OBJECT_KEY, UNKNOWN_SIZE, OracleTensor, walked

__all__ = [
    "OBJECT_KEY",
    "UNKNOWN_SIZE",
    "OracleTensor",
    "load",
    "loads_weights_only",
    "tensors",
    "walked",
]


def tensors(path: Path) -> list[OracleTensor]:
    """Return the tensors of a file or folder, in the order in which it holds them."""
    read = oracle_containers.reader(path)
    if read is None:
        return walked(load(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(path)


def load(path: Path) -> Any:
    """Return what torch.load makes of a file, or pickle of a `.pkl`, with the missing classes."""
    with warnings.catch_warnings(), missing_package():
        warnings.simplefilter("ignore")
        return oracle_containers.loaded(path)


def loads_weights_only(path: Path) -> bool:
    """Tell whether torch.load accepts a file without trusting it; the missing classes are away."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError):
            return False
    return True
