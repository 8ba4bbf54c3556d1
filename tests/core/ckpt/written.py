"""What the files that pttool writes hold, by the libraries of their formats."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open

from tests.core.ckpt import oracle
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.oracle_containers import is_torchscript

State = dict[str, torch.Tensor]
# What is hidden in a path between the names of a state dict.
HIDDEN = ("@state", "_modules", "_parameters", "_buffers")
# Under which key the weights lie, where they are not at the root.
PREFIXES = {
    "training": "state_dict", "lightning": "state_dict", "omegaconf": "state_dict",
    "fsdp": "model", "yolo_like": "model", "unknown_class": "model", "shared_strings": "model",
    "old/torch_0_4": "state_dict", "old/tar": "state_dict", "whole_parallel": "module",
    "distributed": "model", "distributed_files": "model", "objects": "ordered",
}  # fmt: skip


def state_dicts() -> list[str]:
    """Return the kinds of the corpus that hold strided weights whose bytes lie in the file."""
    without = (
        *("bare_storage", "no_tensors", "values", "whole_optimizer", "deep", "safetensors/no_"),
        *("numpy/arrays.p", "numpy/numpy_1", "odd_keys", "object_keys"),
        *("quantized", "sparse", "meta", "nested", "jagged", "zip/skipped_data"),
    )
    as_text = (".p0.pkl", ".p1.pkl", ".p2.pkl")
    return [name for name in KINDS if not name.startswith(without) and not name.endswith(as_text)]


def expected(name: str, path: Path) -> State:
    """Return the tensors below the key of the weights, by their dotted names."""
    if is_torchscript(path):
        return dict(torch.jit.load(path, map_location="cpu").state_dict())  # type: ignore[no-untyped-call]
    if path.suffix == ".pt2":
        return dict(torch.export.load(path).state_dict)
    found = {}
    stem = name if name.startswith("distributed") else name.partition(".")[0]
    prefix = f"{PREFIXES[stem]}." if stem in PREFIXES else ""
    for tensor in _distributed(path) if path.is_dir() else oracle.tensors(path):
        key = ".".join(str(part) for part in tensor.path if part not in HIDDEN) or "tensor"
        if key.startswith(prefix):
            value = tensor.value
            if isinstance(value, np.ndarray):
                value = torch.from_numpy(value.astype(value.dtype.newbyteorder("=")))
            found[key.removeprefix(prefix)] = value
    return found


def _distributed(path: Path) -> list[oracle.OracleTensor]:
    """Return the tensors of a distributed checkpoint, read by torch itself."""
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    whole = path.with_name(f"{path.name}.whole.pt")
    dcp_to_torch_save(path, whole)
    return oracle.tensors(whole)


def loaded(path: Path) -> State:
    """Return what a written torch file holds, loaded safely and by mmap; its zip is sound."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    found: Any = torch.load(path, weights_only=True)
    mapped: Any = torch.load(path, weights_only=True, mmap=True)
    assert list(mapped) == list(found)
    assert all(same(mapped[key], found[key]) for key in found)
    return dict(found)


def loaded_safetensors(path: Path) -> tuple[State, dict[str, str]]:
    """Return the tensors and the metadata of a safetensors file."""
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether two tensors have the same type, shape and bits; parameters count as tensors."""
    return (found.dtype, found.shape) == (wanted.dtype, wanted.shape) and bits(found) == bits(
        wanted
    )


def bits(tensor: torch.Tensor) -> bytes:
    """Return the elements in row-major order."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def index_of(folder: Path) -> dict[str, Any]:
    """Return the index of a folder of shards."""
    (path,) = folder.glob("*.index.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found
