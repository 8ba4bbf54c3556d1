"""The weights that a model would load from a checkpoint of any format, by name."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from pttool.core.ckpt.types import Checkpoint, Format, Tensor
from pttool.core.ckpt.weights.script import script_weights
from pttool.core.ckpt.weights.state_dicts import OTHER_KEYS, USUAL_KEYS, Weights, find_weights
from pttool.errors import InputError, UsageError

# Where torch.export keeps tensors that are no part of the state dict.
CONSTANTS = "/data/constants/"
# Whose metadata names more tensors than the file holds; and what else it says by custom.
WITH_TIES = (Format.SAFETENSORS, Format.SHARDED)
NO_NAMES = ("format", "shards", "total_size")


def model_weights(checkpoint: Checkpoint, key: str | None = None) -> Weights:
    """Return the weights, or what lies under a dotted key; those of a chunked one as they are.

    Names that the metadata of a safetensors file says are tied to another are there too, with the
    same elements.

    Raises InputError where there are none, UsageError for a key that isn't there.
    """
    if checkpoint.format is Format.DISTRIBUTED:
        return _distributed(checkpoint, key)
    if checkpoint.format is Format.TORCHSCRIPT and key is None:
        return script_weights(checkpoint)
    weights = find_weights(checkpoint, key)
    if checkpoint.format is Format.EXPORTED:
        return Weights((), tuple(named for named in weights.tensors if not _is_constant(named[1])))
    if checkpoint.format not in WITH_TIES:
        return weights
    known = dict(weights.tensors)
    tied = tied_in(checkpoint.facts, known)
    return replace(weights, tensors=(*weights.tensors, *((n, known[k]) for n, k in tied.items())))


def tied_in(metadata: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the names that metadata says are one of the tensors again, and that one's name.

    Source: safetensors.torch.save_model, which keeps tensors that share their elements once.
    """
    held = {*names, *NO_NAMES}
    return {name: kept for name, kept in metadata.items() if kept in names and name not in held}


def _distributed(checkpoint: Checkpoint, key: str | None) -> Weights:
    """Its dicts are flattened: model.conv.weight is one key."""
    by_name = {str(tensor.path[0]): tensor for tensor in checkpoint.tensors}
    heads = (key,) if key is not None else USUAL_KEYS
    for head in heads:
        prefix = f"{head}."
        found = [(n.removeprefix(prefix), t) for n, t in by_name.items() if n.startswith(prefix)]
        if found:
            return Weights((head,), tuple(found))
    if key is not None:
        names = dict.fromkeys(name.partition(".")[0] for name in by_name)
        raise UsageError(f"{checkpoint.path}: has no key {key}", f"keys: {', '.join(names)}")
    left = [named for named in by_name.items() if not _is_other(named[0])]
    if not left:
        what = f"{checkpoint.path}: holds no weights"
        raise InputError(what, "pttool ckpt inspect tells what it holds")
    return Weights((), tuple(left))


def _is_other(name: str) -> bool:
    return any(other in name.partition(".")[0] for other in OTHER_KEYS)


def _is_constant(tensor: Tensor) -> bool:
    record = tensor.storage.record if tensor.storage else None
    return record is not None and CONSTANTS in f"/{record.name}"
