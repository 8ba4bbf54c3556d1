"""The weights of a distributed checkpoint, each tensor put together from its chunks."""

from dataclasses import replace

from pttool.core.ckpt.integrity.chunks import tensor_in
from pttool.core.ckpt.types import Checkpoint, Tensor
from pttool.core.ckpt.weights.state_dicts import OTHER_KEYS, USUAL_KEYS, Weights
from pttool.errors import InputError, UsageError

CONVERT = "python -m torch.distributed.checkpoint.format_utils dcp_to_torch"


def distributed_weights(checkpoint: Checkpoint, key: str | None) -> Weights:
    """Return the tensors under a dotted key, or the model's, with their places in the files.

    Raises UsageError for a key that isn't there; InputError for a tensor whose chunks aren't in
    torch's form, or that is cut in several pieces.
    """
    names = [str(tensor.path[0]) for tensor in checkpoint.tensors]
    prefix = f"{key}." if key is not None else _usual_prefix(names)
    found = []
    for name, tensor in zip(names, checkpoint.tensors, strict=True):
        if name.startswith(prefix) and (key or prefix or not _is_other(name)):
            found.append((name.removeprefix(prefix), _in_one_piece(tensor, name, checkpoint)))
    if not found and key is not None:
        heads = dict.fromkeys(name.partition(".")[0] for name in names)
        raise UsageError(f"{checkpoint.path}: has no key {key}", f"keys: {', '.join(heads)}")
    if not found:
        raise InputError(f"{checkpoint.path}: holds no weights", "inspect tells what it holds")
    return Weights((), tuple(found))


def _usual_prefix(names: list[str]) -> str:
    for key in USUAL_KEYS:
        if any(name.startswith(f"{key}.") for name in names):
            return f"{key}."
    return ""


def _is_other(name: str) -> bool:
    head = name.partition(".")[0]
    return any(other in head for other in OTHER_KEYS)


def _in_one_piece(tensor: Tensor, name: str, checkpoint: Checkpoint) -> Tensor:
    records = [part.storage.record if part.storage else None for part in tensor.parts]
    if len(records) != 1 or records[0] is None:
        what = f"{checkpoint.path}: {name} is cut into {len(records)} pieces"
        raise InputError(what, f"put them together first: {CONVERT}")
    inner = tensor_in(records[0])
    if (inner.dtype, inner.shape) != (tensor.dtype, tensor.shape):
        what = f"{checkpoint.path}: {name} is not what its chunk holds"
        raise InputError(what, "it is damaged: copy the folder again")
    return replace(inner, path=tensor.path)
