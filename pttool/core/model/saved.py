"""Models and weights in files: told apart by their bytes before anything is loaded."""

import json
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pttool.core.foreign import foreign_code
from pttool.core.model.spec import InputSpec
from pttool.errors import InputError

PICKLE_MAGIC = b"\x80"
NESTED_STATE_DICTS = ("state_dict", "model_state_dict", "model", "module", "ema", "net")
# A state dict doesn't say which of its tensors are buffers; these are, in torch's own layers.
BUFFER_NAMES = frozenset(("running_mean", "running_var", "num_batches_tracked"))


class Kind(StrEnum):
    """What a file holds."""

    TORCHSCRIPT = "TorchScript"
    EXPORTED = "torch.export"
    PICKLE = "pickle"
    SAFETENSORS = "safetensors"


@dataclass(frozen=True, slots=True)
class Saved:
    """A module from a file. A state dict is a module that only holds tensors and can't be run."""

    module: nn.Module
    source: str
    device: str
    default_inputs: tuple[InputSpec, ...] = ()
    is_state_dict: bool = False


def load(path: Path, *, trust_pickle: bool) -> Saved:
    """Return what a file holds, its tensors on meta where torch can put them there.

    No code of the file is run, unless `trust_pickle` allows a whole module to be unpickled.
    Raises InputError for a file that is none of the kinds, is damaged, or isn't trusted.
    """
    match _sniff(path):
        case Kind.TORCHSCRIPT:
            with foreign_code(str(path)):
                module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
            return Saved(module, "TorchScript", "cpu")
        case Kind.EXPORTED:
            return _exported(path)
        case Kind.SAFETENSORS:
            module = holder(_safetensors(path))
            return Saved(module, "safetensors", "meta", is_state_dict=True)
    loaded = _unpickled(path, trust_pickle)
    if isinstance(loaded, nn.Module):
        return Saved(loaded, "pickled module", "meta")
    tensors = state_dict_of(loaded)
    if not tensors:
        raise InputError(
            f"{path}: holds a {type(loaded).__name__} without tensors, not a model",
            "give a model's file or a state dict",
        )
    return Saved(holder(tensors), "state dict", "meta", is_state_dict=True)


def holder(tensors: Mapping[str, Tensor]) -> nn.Module:
    """Return a module that holds tensors under their dotted names, tied ones once."""
    root = nn.Module()
    known: dict[Any, nn.Parameter | Tensor] = {}
    for name, tensor in tensors.items():
        *path, leaf = name.split(".")
        module = root
        for part in path:
            module = module._modules.setdefault(part, nn.Module())  # type: ignore[assignment]
        identity = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape)
        if leaf in BUFFER_NAMES or not tensor.is_floating_point():
            module._buffers[leaf] = tensor
        else:
            module._parameters[leaf] = known.setdefault(identity, nn.Parameter(tensor))  # type: ignore[assignment]
    return root


def _sniff(path: Path) -> Kind:
    try:
        with path.open("rb") as stream:
            head = stream.read(9)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check the path of the file") from error
    if not head:
        raise InputError(f"{path}: is empty", "copy or download it again")
    if head[:1] == PICKLE_MAGIC:
        return Kind.PICKLE
    if head[8:] == b"{":
        return Kind.SAFETENSORS
    if head[:4] != b"PK\x03\x04":
        raise InputError(
            f"{path}: is nothing that torch saved",
            "a model's file starts as a zip or a pickle does",
        )
    return _sniff_zip(path)


def _sniff_zip(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2] or name for name in archive.namelist()}
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: is a damaged or cut zip: {error}", "copy it again") from error
    if "constants.pkl" in names and any(name.startswith("code/") for name in names):
        return Kind.TORCHSCRIPT
    if "archive_format" in names or any(name.startswith("models/") for name in names):
        return Kind.EXPORTED
    if "data.pkl" in names:
        return Kind.PICKLE
    raise InputError(f"{path}: is a zip that torch didn't write", "give a model's file")


def _exported(path: Path) -> Saved:
    with foreign_code(str(path)):
        program = torch.export.load(path)
        positional, named = program.example_inputs or ((), {})
        module = program.module()
    inputs = tuple(_spec(value) for value in positional if isinstance(value, Tensor))
    inputs += tuple(_spec(v, name) for name, v in named.items() if isinstance(v, Tensor))
    return Saved(module, "torch.export", "cpu", inputs)


def _spec(tensor: Tensor, name: str | None = None) -> InputSpec:
    """Return the spec of an example input, whose first dimension is the batch."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return InputSpec(tuple(tensor.shape[1:]), dtype, name, tensor.shape[0] if tensor.ndim else None)


def _unpickled(path: Path, trust_pickle: bool) -> Any:
    try:
        with foreign_code(str(path)):
            return torch.load(path, map_location="meta", weights_only=not trust_pickle)
    except InputError as error:
        if isinstance(error.__cause__, pickle.UnpicklingError) and not trust_pickle:
            raise InputError(
                f"{path}: holds more than weights, and loading it can run any code",
                "if you trust where it comes from: --trust-pickle",
            ) from error
        if isinstance(error.__cause__, EOFError):
            raise InputError(f"{path}: is cut short", "copy or download it again") from error
        raise


def _safetensors(path: Path) -> dict[str, Tensor]:
    """Return meta tensors for the header of a safetensors file; its tensors aren't read.

    Source: the format's own description (8 bytes of length, then JSON).
    """
    try:
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(size, path.stat().st_size)))
        header.pop("__metadata__", None)
        return {
            name: torch.empty(entry["shape"], dtype=_SAFETENSORS[entry["dtype"]], device="meta")
            for name, entry in header.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: its safetensors header is damaged", "copy it again") from error


_SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64,
    "C64": torch.complex64,
}  # fmt: skip


def state_dict_of(loaded: Any) -> dict[str, Tensor]:
    """Return the tensors of a mapping, or of the state dict inside a training checkpoint."""
    if not isinstance(loaded, Mapping):
        return {}
    for key in NESTED_STATE_DICTS:
        nested = loaded.get(key)
        if isinstance(nested, Mapping) and any(isinstance(v, Tensor) for v in nested.values()):
            return state_dict_of(nested)
    return {str(name): value for name, value in loaded.items() if isinstance(value, Tensor)}
