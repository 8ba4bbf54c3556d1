"""Choose the tensors of a checkpoint that a verb writes into a new file."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from pttool.core.ckpt.containers.distributed_chunks import tensor_in
from pttool.core.ckpt.files.words import listed
from pttool.core.ckpt.pickles.nodes import Dict
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.types import Checkpoint, Format, Tensor
from pttool.core.ckpt.weights.layout import Named
from pttool.core.ckpt.weights.model_weights import model_weights
from pttool.core.ckpt.weights.state_dicts import Weights
from pttool.errors import InputError, UsageError

# What a checkpoint that is one bare tensor calls it in a state dict.
BARE = "tensor"
SPARSE = frozenset(("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"))
PUT_TOGETHER = "python -m torch.distributed.checkpoint.format_utils dcp_to_torch"
# What the index of a sharded checkpoint says of itself.
OF_THE_INDEX = ("shards", "total_size")


@dataclass(frozen=True, slots=True)
class Selection:
    """Tensors by name in the order of the state dict, and what was left behind.

    `dropped` are the top-level keys of the checkpoint of which nothing was chosen; `metadata` is
    what a safetensors file says besides which names are tied.
    """

    checkpoint: Checkpoint
    tensors: tuple[Named, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]
    metadata: Mapping[str, str]


def select(path: Path, *, key: str | None = None, glob: str | None = None) -> Selection:
    """Return the weights of a checkpoint, or those under a dotted key, whose names match a glob.

    Names that the metadata of a safetensors file says are tied to another are there too, with the
    same elements.

    Raises InputError for a checkpoint without weights, or in which two have one name; UsageError
    for a key or glob without a match.
    """
    checkpoint = read(path)
    named = _named(model_weights(checkpoint, key), path)
    if checkpoint.format is Format.DISTRIBUTED:
        named = [(name, _in_one_piece(tensor, path)) for name, tensor in named]
    known = {name for name, _ in named}
    metadata = _metadata(checkpoint)
    if not named:
        raise InputError(f"{path}: holds no weights", "pttool ckpt inspect tells what it holds")
    chosen = named if glob is None else filtered(named, glob)
    _check_present(chosen, checkpoint)
    classes = {tensor.subclass for _, tensor in chosen if tensor.subclass}
    notes = [f"plain tensors are written for those of {name}" for name in sorted(classes)]
    if any(not tensor.path for _, tensor in named):
        notes.append(f"the one tensor has no name: it is called {BARE}")
    return Selection(
        checkpoint,
        tuple(chosen),
        _dropped(checkpoint, named),
        tuple(notes),
        {key: text for key, text in metadata.items() if key not in known},
    )


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


def is_writable(named: Named) -> bool:
    """Whether a torch file can hold a tensor: a strided one, or a sparse one as its parts."""
    tensor = named[1]
    return tensor.layout in SPARSE or unwritable(tensor) is None


def is_safetensors(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a safetensors file, or an index of such."""
    is_index = checkpoint.format is Format.SHARDED and not checkpoint.pickles
    return is_index or checkpoint.format is Format.SAFETENSORS


def _metadata(checkpoint: Checkpoint) -> dict[str, str]:
    facts = checkpoint.facts if is_safetensors(checkpoint) else {}
    return {key: text for key, text in facts.items() if key not in OF_THE_INDEX}


def input_bytes(checkpoint: Checkpoint) -> int:
    """Return the bytes that the files of a checkpoint take."""
    files = {checkpoint.path, *(record.file for record in checkpoint.records)}
    return sum(file.stat().st_size for file in files if file.is_file())


def _named(weights: Weights, path: Path) -> list[Named]:
    found = [(name if tensor.path else BARE, tensor) for name, tensor in weights.tensors]
    twice = [repr(name) for name, times in Counter(name for name, _ in found).items() if times > 1]
    if twice:
        what = f"{path}: several tensors would have the same name: {listed(twice)}"
        raise InputError(what, "choose a dict of it with --key")
    return found


def _in_one_piece(tensor: Tensor, path: Path) -> Tensor:
    """Return a tensor of a distributed checkpoint with the place of its elements in the files.

    Raises InputError where its chunks aren't in torch's form, or it is cut in several.
    """
    name = tensor.path[0]
    records = [part.storage.record if part.storage else None for part in tensor.parts]
    if len(records) != 1 or records[0] is None:
        what = f"{path}: {name} is cut into {len(records)} pieces"
        raise InputError(what, f"put them together first: {PUT_TOGETHER}")
    inner = tensor_in(records[0])
    if (inner.dtype, inner.shape) != (tensor.dtype, tensor.shape):
        what = f"{path}: {name} is not what its chunk holds"
        raise InputError(what, "it is damaged: copy the folder again")
    return replace(inner, path=tensor.path)


def _check_present(tensors: Iterable[Named], checkpoint: Checkpoint) -> None:
    for name, tensor in tensors:
        if tensor.storage is not None and tensor.storage.record is None:
            is_pickle = checkpoint.format is Format.PICKLE
            why = "encoded as text" if is_pickle else "not in the file"
            hint = "load it with pickle, then torch.save it" if is_pickle else "copy it again"
            raise InputError(f"{checkpoint.path}: the elements of {name} are {why}", hint)


def filtered(tensors: Sequence[Named], glob: str) -> list[Named]:
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
