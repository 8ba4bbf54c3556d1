"""A checkpoint in several files, under an index.json that says which file holds which tensor.

Form of the index: https://huggingface.co/docs/transformers/big_models#sharding-checkpoints.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pttool.core.ckpt.files.patching import recover
from pttool.core.ckpt.files.payload import damaged, opened, read_at
from pttool.core.ckpt.files.words import listed, quoted
from pttool.core.ckpt.formats.json_objects import without_doubles
from pttool.core.ckpt.formats.recognition import LARGEST_INDEX, indices_of, recognise, unreadable
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.types import Checkpoint, Format, Storage, Tensor
from pttool.errors import InputError

_UNSAFE = re.compile(r"[/\\]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|$)|.*[\0-\x1f]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Index:
    """What an index says: the shard of each tensor, and facts about the whole."""

    path: Path
    weight_map: Mapping[str, str]
    metadata: Mapping[str, Any]

    @property
    def shards(self) -> list[str]:
        """The names of the shards, in the order of their first tensor."""
        return list(dict.fromkeys(self.weight_map.values()))


def open_sharded(path: Path, open_one: Callable[[Path], Checkpoint]) -> Checkpoint:
    """Return the tensors of all shards of an index, given as that file or as its folder.

    `open_one` opens a shard. Raises InputError for a damaged index, for a shard that is missing,
    is named outside of the index's folder or is no checkpoint of its own, and as `open_one` does.
    Where index and shards differ otherwise, both are said, as warnings.
    """
    index = read_index(path)
    folder = index.path.parent
    _check_present(index, folder)
    shards = {name: _opened(folder / name, index, open_one) for name in index.shards}
    tensors = [
        tensor for name, shard in shards.items() for tensor in _told_apart(shard.tensors, name)
    ]
    return Checkpoint(
        path=path,
        format=Format.SHARDED,
        tensors=tuple(tensors),
        values=tuple(value for shard in shards.values() for value in shard.values),
        records=tuple(record for shard in shards.values() for record in shard.records),
        pickles=tuple(pickle for shard in shards.values() for pickle in shard.pickles),
        facts=_facts(index, list(shards.values())),
        warnings=tuple(_warnings(index, shards, tensors)),
    )


def read_index(path: Path) -> Index:
    """Return the index at a path, or of the one in a folder.

    Raises InputError for a folder without just one, and for a damaged or hostile one.
    """
    if os.path.isdir(path):
        try:
            found = indices_of(sorted(os.listdir(path)))
        except OSError as error:
            raise unreadable(path, error) from error
        if len(found) != 1:
            raise InputError(f"{path}: has {len(found)} files *.index.json", "give one of them")
        path = path / found[0]
    with opened(path) as file:
        raw = read_at(file, 0, LARGEST_INDEX + 1, path)
    if len(raw) > LARGEST_INDEX:
        raise damaged(path, f"is an index of more than {LARGEST_INDEX:,} bytes")
    try:
        document: Any = json.loads(raw, object_pairs_hook=without_doubles)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise damaged(path, f"is a damaged index: {reason}") from error
    document = document if isinstance(document, dict) else {}
    weight_map, metadata = document.get("weight_map"), document.get("metadata")
    if not isinstance(weight_map, dict) or not weight_map:
        raise damaged(path, "is an index without a weight_map")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or not shard or _UNSAFE.match(shard):
            raise damaged(
                path, f"names {quoted(str(shard))} for {quoted(name)}: no file in its folder"
            )
    return Index(path, weight_map, metadata if isinstance(metadata, dict) else {})


def _check_present(index: Index, folder: Path) -> None:
    names = index.shards
    missing = [name for name in names if not os.path.exists(folder / name)]
    if missing:
        raise InputError(
            f"{index.path}: {len(missing):,} of its {len(names):,} shards are missing: "
            f"{listed(missing)}",
            f"put them into {folder}, under the names that the index has",
        )


def _opened(path: Path, index: Index, open_one: Callable[[Path], Checkpoint]) -> Checkpoint:
    recover(path)
    # An index that names an index could lead back to itself.
    if os.path.isdir(path) or recognise(path) is Format.SHARDED:
        raise damaged(index.path, f"names {quoted(path.name)} as a shard, which is no single file")
    return open_one(path)


def _told_apart(tensors: Sequence[Tensor], shard: str) -> Iterator[Tensor]:
    """Yield the tensors with the shard's name in the key of each storage.

    The keys of torch's storages count from 0 in every file. A storage that several tensors share
    is still one afterwards.
    """
    known: dict[int, Storage] = {}

    def renamed(tensor: Tensor) -> Tensor:
        storage = tensor.storage
        if storage is not None and id(storage) not in known:
            known[id(storage)] = replace(storage, key=f"{shard}:{storage.key}")
        return replace(
            tensor,
            storage=None if storage is None else known[id(storage)],
            parts=tuple(map(renamed, tensor.parts)),
        )

    return map(renamed, tensors)


def _facts(index: Index, shards: Sequence[Checkpoint]) -> dict[str, str]:
    """Return what the index says, and what every shard says alike."""
    common = dict(shards[0].facts)
    for shard in shards[1:]:
        common = {key: value for key, value in common.items() if shard.facts.get(key) == value}
    said = {
        key: str(value)
        for key, value in index.metadata.items()
        if isinstance(value, (str, int, float))
    }
    return {**common, **said, "shards": str(len(shards))}


def _warnings(
    index: Index, shards: Mapping[str, Checkpoint], tensors: Sequence[Tensor]
) -> Iterator[str]:
    homes: dict[str, list[str]] = {}
    for shard, checkpoint in shards.items():
        for name in _names(checkpoint):
            homes.setdefault(name, []).append(shard)
    wanted = index.weight_map
    for what, names in (
        ("in the index, but in no shard", [n for n in wanted if n not in homes]),
        (
            "in another shard than the index says",
            [n for n, shard in wanted.items() if n in homes and shard not in homes[n]],
        ),
        ("in a shard, but not in the index", [n for n in homes if n not in wanted]),
        ("in several shards", [n for n, found in homes.items() if len(found) > 1]),
    ):
        if names:
            yield f"{len(names):,} key{'s' * (len(names) != 1)} {what}: {listed(names)}"
    for shard, checkpoint in shards.items():
        yield from (f"{shard}: {warning}" for warning in checkpoint.warnings)
    yield from _size_warning(index.metadata.get("total_size"), tensors)


def _names(checkpoint: Checkpoint) -> Iterator[str]:
    for tensor in checkpoint.tensors:
        yield ".".join(str(part) for part in tensor.path)
    # A state_dict may hold what is no tensor, as the extra state of a module.
    for value in checkpoint.values:
        if len(value.path) == 1:
            yield str(value.path[0])


def _size_warning(total: Any, tensors: Sequence[Tensor]) -> Iterator[str]:
    """Compare the index's total with what the tensors need, and with what their storages take.

    Libraries count either, and a tied tensor once or twice.
    """
    if type(total) not in (int, float) or not math.isfinite(total):
        return
    needed = sum(math.prod(tensor.shape) * item_bytes(tensor.dtype) for tensor in tensors)
    taken = {id(tensor.storage): tensor.storage for tensor in tensors}
    stored = sum(storage.size_bytes for storage in taken.values() if storage is not None)
    if total not in (needed, stored):
        yield f"the index says {int(total):,} bytes in total; the tensors take {needed:,}"
