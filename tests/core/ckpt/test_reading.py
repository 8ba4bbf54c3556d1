"""What a checkpoint holds equals what torch.load, or the library of its format, makes of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pttool.core.ckpt.reading import read
from pttool.core.ckpt.types import Format, Tensor
from tests.core.ckpt import oracle
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.oracle_tensors import UNKNOWN_SIZE, OracleTensor
from tests.core.ckpt.real_files import REAL_FILES

# Whose pickles keep parameters and buffers as plain tensors alike.
WITHOUT_ROLES = (Format.TORCHSCRIPT, Format.SAFETENSORS, Format.SHARDED, Format.NPZ, Format.NPY)
# Where a name finds a tensor, and nothing says which comes first.
WITHOUT_ORDER = (Format.SAFETENSORS, Format.SHARDED)


@pytest.mark.parametrize("name", KINDS)
def test_every_tensor_equals_torchs(name: str, corpus: dict[str, Path]) -> None:
    checkpoint = read(corpus[name])
    assert checkpoint.format == KINDS[name].format
    wanted = [tensor for tensor in oracle.tensors(corpus[name]) if _is_listed(tensor, checkpoint)]
    tensors = checkpoint.tensors
    if checkpoint.format in WITHOUT_ORDER:
        tensors = tuple(sorted(tensors, key=lambda tensor: tensor.path))
        wanted.sort(key=lambda tensor: tensor.path)
    assert [tensor.path for tensor in tensors] == [tensor.path for tensor in wanted]
    for ours, theirs in zip(tensors, wanted, strict=True):
        assert _facts(ours, theirs) == _wanted(theirs), theirs.path
        if checkpoint.format not in WITHOUT_ROLES:
            assert (ours.role == "parameter") == theirs.is_parameter, theirs.path


@pytest.mark.parametrize("name", REAL_FILES)
def test_every_tensor_of_a_real_file_equals_torchs(
    name: str, real_file: Callable[[str], Path]
) -> None:
    path = real_file(name)
    checkpoint = read(path)
    assert checkpoint.format == REAL_FILES[name].format
    wanted = oracle.tensors(path)
    assert len(wanted) == REAL_FILES[name].tensors
    assert [tensor.path for tensor in checkpoint.tensors] == [tensor.path for tensor in wanted]
    for ours, theirs in zip(checkpoint.tensors, wanted, strict=True):
        assert _facts(ours, theirs) == _wanted(theirs), theirs.path


def test_storages_are_shared_as_torch_shares_them(corpus: dict[str, Path]) -> None:
    for name in ("views.pt", "views.legacy.pt", "old/storage_views.pt", "views.p2.pkl"):
        ours, theirs = read(corpus[name]).tensors, oracle.tensors(corpus[name])
        groups: dict[Any, Any] = {}
        for tensor, wanted in zip(ours, theirs, strict=True):
            assert tensor.storage is not None
            assert groups.setdefault(wanted.storage, tensor.storage.key) == tensor.storage.key, name


def _is_listed(tensor: OracleTensor, checkpoint: Any) -> bool:
    """Arrays are values where torch's tensors are the tensors."""
    return tensor.library != "numpy" or checkpoint.format in (Format.NPZ, Format.NPY)


def _facts(tensor: Tensor, wanted: OracleTensor) -> tuple[Any, ...]:
    assert len(tensor.shape) == len(wanted.shape)
    knows_shape = tensor.layout != "nested" or UNKNOWN_SIZE not in tensor.shape
    size = None if tensor.storage is None else tensor.storage.size_bytes
    if wanted.library == "numpy":  # the file's header is before the elements of a deflated array
        return tensor.dtype, tensor.shape, tensor.stride
    return (
        tensor.dtype,
        tensor.shape if knows_shape else wanted.shape,
        tensor.stride,
        tensor.offset,
        size,
        tensor.requires_grad,
        tensor.layout,
    )


def _wanted(tensor: OracleTensor) -> tuple[Any, ...]:
    if tensor.library == "numpy":
        return np.dtype(tensor.dtype).name, tensor.shape, tensor.stride
    return (
        tensor.dtype,
        tensor.shape,
        tensor.stride,
        tensor.storage_offset,
        tensor.storage_bytes,
        tensor.requires_grad,
        tensor.layout,
    )
