"""Put a file of weights into a model, strictly: no key is missing and none is left over."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from pttool.core.foreign import foreign_code
from pttool.core.model import saved
from pttool.errors import InputError

MOST_SHOWN = 8
PARALLEL = ("module.", "_orig_mod.")


def load_strictly(module: nn.Module, path: Path, *, name: str) -> None:
    """Load a state dict, or the one inside a training checkpoint, into a module on the CPU.

    The file is a .safetensors or one of torch's, which is read with `weights_only`.

    Raises InputError for a file that is neither or holds no tensors, and for one that doesn't fit:
    the missing and unexpected keys and the other shapes are named.
    """
    tensors = _tensors(path)
    wanted = {key: v for key, v in module.state_dict().items() if isinstance(v, Tensor)}
    missing = [key for key in wanted if key not in tensors]
    unexpected = [key for key in tensors if key not in wanted]
    reshaped = [
        f"{key} {list(tensors[key].shape)} for {list(value.shape)}"
        for key, value in wanted.items()
        if key in tensors and tensors[key].shape != value.shape
    ]
    if missing or unexpected or reshaped:
        faults = (("missing", missing), ("unexpected", unexpected), ("of another shape", reshaped))
        told = "; ".join(f"{kind}: {_listed(keys)}" for kind, keys in faults if keys)
        raise InputError(f"{path}: doesn't fit {name}: {told}", _hint(path, name, wanted, tensors))
    with foreign_code(str(path)):
        module.load_state_dict(tensors)


def fingerprint(module: nn.Module) -> str:
    """Return the SHA-256 of a module's tensors: their names, dtypes, shapes and bytes."""
    digest = hashlib.sha256()
    for key, value in sorted(module.state_dict().items()):
        if isinstance(value, Tensor):
            tensor = value.detach().cpu().contiguous().flatten()
            digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
            digest.update(tensor.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _tensors(path: Path) -> Mapping[str, Tensor]:
    described = _described(path)
    if not described.is_state_dict:
        raise InputError(
            f"{path}: is a model ({described.source}), not weights alone",
            f"--weights takes a state dict, and MODEL could be {path}",
        )
    with foreign_code(str(path)):
        if described.source == "safetensors":
            return _safetensors(path, described.module.state_dict())
        return saved.state_dict_of(torch.load(path, map_location="cpu", weights_only=True))


def _described(path: Path) -> saved.Saved:
    """Return what a file holds, without its values; says what is wrong with one that can't be."""
    try:
        return saved.load(path, trust_pickle=False)
    except InputError as error:
        if isinstance(error.__cause__, InputError):  # it holds more than weights_only allows
            hint = f"pttool ckpt extract {shlex.quote(str(path))} -o weights.pt keeps its weights"
            raise InputError(error.message, hint) from error
        raise


def _safetensors(path: Path, described: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the tensors of a safetensors file, of which the dtypes and shapes are known.

    Source: the format's own description (8 bytes of length, then JSON, then the tensors' bytes).
    """
    with path.open("rb") as stream:
        start = 8 + int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(start - 8))
        tensors = {}
        for key, tensor in described.items():
            first, last = header[key]["data_offsets"]
            size = tensor.numel() * tensor.element_size()
            stream.seek(start + first)
            content = bytearray(stream.read(size))
            if last - first != size or len(content) != size:
                raise InputError(f"{path}: the bytes of {key} are not all there", "copy it again")
            flat = torch.frombuffer(content, dtype=tensor.dtype) if size else tensor.new_empty(0)
            tensors[key] = flat.reshape(tensor.shape)
    return tensors


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - MOST_SHOWN} more" if len(keys) > MOST_SHOWN else ""
    return ", ".join(keys[:MOST_SHOWN]) + more


def _hint(
    path: Path, name: str, wanted: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> str:
    quoted = shlex.quote(str(path))
    if any(key.startswith(PARALLEL) and key not in wanted for key in tensors):
        return f"strip the prefix: pttool ckpt strip-dataparallel {quoted} -o plain.pt"
    return f"pttool ckpt match {quoted} {shlex.quote(name)} tells more"
