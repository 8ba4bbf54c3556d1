"""Choose the tensors of a checkpoint that a verb writes into a new file."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from pttool.core.ckpt.formats.archives import listed
from pttool.core.ckpt.pickles.nodes import Dict
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.types import Checkpoint, Format, Tensor
from pttool.core.ckpt.weights.distributed import distributed_weights
from pttool.core.ckpt.weights.layout import Named
from pttool.core.ckpt.weights.script import script_weights
from pttool.core.ckpt.weights.state_dicts import Weights, find_weights
from pttool.errors import InputError, UsageError

# What a checkpoint that is one bare tensor calls it in a state dict.
BARE = "tensor"
SPARSE = frozenset(("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"))
CONSTANTS = "/data/constants/"


@dataclass(frozen=True, slots=True)
class Selection:
    """Tensors by name in the order of the state dict, and what was left behind.

    `dropped` are the top-level keys of the checkpoint of which nothing was chosen.
    """

    checkpoint: Checkpoint
    tensors: tuple[Named, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]


def select(path: Path, *, key: str | None = None, glob: str | None = None) -> Selection:
    """Return the weights of a checkpoint, or those under a dotted key, whose names match a glob.

    Raises InputError for a checkpoint without weights, or in which two have one name; UsageError
    for a key or glob without a match.
    """
    checkpoint = read(path)
    weights = _weights(checkpoint, key)
    found = _named(weights, path)
    if not found:
        raise InputError(f"{path}: holds no weights", "pttool ckpt inspect tells what it holds")
    chosen = found if glob is None else matching(found, glob)
    _check_present(chosen, checkpoint)
    classes = {tensor.subclass for _, tensor in chosen if tensor.subclass}
    notes = [f"plain tensors are written for those of {name}" for name in sorted(classes)]
    if any(not tensor.path for _, tensor in found):
        notes.append(f"the one tensor has no name: it is called {BARE}")
    return Selection(checkpoint, tuple(chosen), _dropped(checkpoint, found), tuple(notes))


def without(selection: Selection, left_out: Iterable[Named]) -> tuple[Named, ...]:
    """Return the tensors of a selection but for some. Raises InputError where none is left."""
    names = {name for name, _ in left_out}
    kept = tuple(named for named in selection.tensors if named[0] not in names)
    if names and not kept:
        what = "holds no tensor that can be written"
        raise InputError(f"{selection.checkpoint.path}: {what}", left_out_note(left_out)[0])
    return kept


def left_out_note(left_out: Iterable[Named]) -> tuple[str, ...]:
    """Return what to say of tensors that can't be written, one line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for name, tensor in left_out:
        by_reason.setdefault(unwritable(tensor) or tensor.layout, []).append(name)
    return tuple(
        f"{len(names):,} {reason} left out: {listed(names)}" for reason, names in by_reason.items()
    )


def unwritable(tensor: Tensor) -> str | None:
    """Return what keeps a tensor from being written, or None for a strided one with elements."""
    if tensor.layout != "strided":
        return tensor.layout
    if tensor.storage is None and not tensor.parts:
        return "without elements of its own"
    return None if item_bytes(tensor.dtype) else f"of type {tensor.dtype}"


def is_safetensors(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a safetensors file, or an index of such."""
    is_index = checkpoint.format is Format.SHARDED and not checkpoint.pickles
    return is_index or checkpoint.format is Format.SAFETENSORS


def input_bytes(checkpoint: Checkpoint) -> int:
    """Return the bytes that the files of a checkpoint take."""
    files = {checkpoint.path, *(record.file for record in checkpoint.records)}
    return sum(file.stat().st_size for file in files if file.is_file())


def _weights(checkpoint: Checkpoint, key: str | None) -> Weights:
    if checkpoint.format is Format.DISTRIBUTED:
        return distributed_weights(checkpoint, key)
    if checkpoint.format is Format.TORCHSCRIPT and key is None:
        return script_weights(checkpoint)
    found = find_weights(checkpoint, key)
    if checkpoint.format is Format.EXPORTED:
        kept = tuple(named for named in found.tensors if not _is_constant(named[1]))
        return Weights(found.path, kept)
    return found


def _is_constant(tensor: Tensor) -> bool:
    record = tensor.storage.record if tensor.storage else None
    return record is not None and CONSTANTS in f"/{record.name}"


def _named(weights: Weights, path: Path) -> list[Named]:
    found = [(name if tensor.path else BARE, tensor) for name, tensor in weights.tensors]
    twice = [repr(name) for name, times in Counter(name for name, _ in found).items() if times > 1]
    if twice:
        what = f"{path}: several tensors would have the same name: {listed(twice)}"
        raise InputError(what, "choose a dict of it with --key")
    return found


def _check_present(tensors: Iterable[Named], checkpoint: Checkpoint) -> None:
    for name, tensor in tensors:
        if tensor.storage is not None and tensor.storage.record is None:
            is_pickle = checkpoint.format is Format.PICKLE
            why = "encoded as text" if is_pickle else "not in the file"
            hint = "load it with pickle, then torch.save it" if is_pickle else "copy it again"
            raise InputError(f"{checkpoint.path}: the elements of {name} are {why}", hint)


def matching(tensors: Sequence[Named], glob: str) -> list[Named]:
    """Return the tensors whose names match a glob. Raises UsageError where none does."""
    found = [named for named in tensors if fnmatchcase(named[0], glob)]
    if not found:
        nearest = get_close_matches(glob, [name for name, _ in tensors], 3, 0.0)
        raise UsageError(f"--filter {glob}: matches no tensor", f"nearest: {', '.join(nearest)}")
    return found


def _dropped(checkpoint: Checkpoint, chosen: Sequence[Named]) -> tuple[str, ...]:
    if not isinstance(checkpoint.root, Dict):
        return ()
    kept = {tensor.path[0] for _, tensor in chosen if tensor.path}
    keys = [key for key, _ in checkpoint.root.pairs if isinstance(key, (str, int))]
    return tuple(str(key) for key in keys if key not in kept)
