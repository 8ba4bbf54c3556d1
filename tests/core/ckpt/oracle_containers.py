"""The oracles of the formats that torch.load doesn't read."""

import json
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.core.ckpt.oracle_tensors import (
    OracleTensor,
    TensorPath,
    array,
    described,
    walked,
)

Reader = Callable[[Path], list[OracleTensor]]


def reader(path: Path) -> Reader | None:
    """Return what reads a file or folder, or None if torch.load or pickle does."""
    if path.is_dir():
        return distributed
    by_suffix: dict[str, Reader] = {
        ".safetensors": safetensors,
        ".json": sharded,
        ".npz": npz,
        ".npy": npy,
        ".pt2": exported,
    }
    if path.suffix in by_suffix:
        return by_suffix[path.suffix]
    return torchscript if is_torchscript(path) else None


def is_torchscript(path: Path) -> bool:
    """Tell whether a zip archive holds the constants that only TorchScript writes."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def loaded(path: Path) -> Any:
    """Return what torch.load makes of a file, or pickle of a `.pkl`."""
    if path.suffix == ".pkl":
        return pickle.loads(path.read_bytes())
    return torch.load(path, map_location="cpu", weights_only=False)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor as torch counts them: a size of 0 counts as 1."""
    return tuple(torch.empty(shape, device="meta").stride())


def safetensors(path: Path) -> list[OracleTensor]:
    """Return the tensors in the order of their bytes in the file."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        named = {name: file.get_tensor(name) for name in file.offset_keys()}
    return [
        replace(described(tensor, (name,), {}), storage=at, storage_bytes=tensor.nbytes)
        for at, (name, tensor) in enumerate(named.items())
    ]


def sharded(path: Path) -> list[OracleTensor]:
    """Return the tensors in the order of the index, each as its shard has it."""
    index: dict[str, str] = json.loads(path.read_text())["weight_map"]
    of_shard = {
        shard: {one.path: one for one in _shard(path.with_name(shard))}
        for shard in dict.fromkeys(index.values())
    }
    return [of_shard[shard][(name,)] for name, shard in index.items()]


def _shard(path: Path) -> list[OracleTensor]:
    return safetensors(path) if path.suffix == ".safetensors" else walked(loaded(path))


def npz(path: Path) -> list[OracleTensor]:
    """Return the arrays of an archive."""
    with np.load(path, allow_pickle=False) as archive:
        return [array(archive[name], (name,)) for name in archive.files]


def npy(path: Path) -> list[OracleTensor]:
    """Return the one array, at the root."""
    return [array(np.load(path, allow_pickle=False), ())]


def torchscript(path: Path) -> list[OracleTensor]:
    """Return the tensors among a module's attributes, in the order of the class' attributes."""
    load: Callable[..., Any] = torch.jit.load
    module = load(path, map_location="cpu")._c
    return list(_script_tensors(module, (), {}))


def _script_tensors(
    module: Any, path: TensorPath, storages: dict[int, int]
) -> Iterator[OracleTensor]:
    inside: Any = torch._C
    parameters = {name for name, _ in inside.ParameterDict(module).items()}
    modules = dict(inside.ModuleDict(module).items())
    for name in _script_attributes(module):
        here = (*path, "@state", name)
        if name in modules:
            yield from _script_tensors(modules[name], here, storages)
        elif isinstance(value := module.getattr(name), torch.Tensor):
            yield replace(described(value, here, storages), is_parameter=name in parameters)


def _script_attributes(module: Any) -> list[str]:
    """Return the names of attributes, which torch tells only in its dump for people."""
    dump: str = module.dump_to_str(False, True, False)
    block = dump.partition("\n  attributes {\n")[2].partition("\n  }\n")[0]
    return re.findall(r"^ {4}(\w+) = ", block, re.MULTILINE)


def exported(path: Path) -> list[OracleTensor]:
    """Return the weights, then the constants, of an exported program, each under its name."""
    program: Any = torch.export.load(path)
    named = {**program.state_dict, **program.constants}
    storages: dict[int, int] = {}
    return [
        described(tensor, (name,), storages)
        for name, tensor in named.items()
        if isinstance(tensor, torch.Tensor)
    ]


def distributed(path: Path) -> list[OracleTensor]:
    """Return the tensors of a distributed checkpoint's metadata; chunks as in `value`."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    described_by = FileSystemReader(path).read_metadata().state_dict_metadata
    return [
        OracleTensor(
            path=(name,),
            shape=tuple(meta.size),
            dtype=str(meta.properties.dtype).removeprefix("torch."),
            stride=contiguous(tuple(meta.size)),
            storage_bytes=prod(meta.size) * meta.properties.dtype.itemsize,
            requires_grad=meta.properties.requires_grad,
            layout=str(meta.properties.layout).removeprefix("torch."),
            value=meta,
        )
        for name, meta in described_by.items()
        if isinstance(meta, TensorStorageMetadata)
    ]
