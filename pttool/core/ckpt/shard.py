"""`shard`: the weights of a checkpoint in several files, under an index.

Form: https://huggingface.co/docs/transformers/big_models#sharding-checkpoints, as written by
huggingface_hub's split_torch_state_dict_into_shards.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pttool.core.ckpt.files.disks import check_room
from pttool.core.ckpt.files.new_folder import check_new_folder, new_folder
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import count
from pttool.core.ckpt.weights.layout import Named, distinct, laid_out
from pttool.core.ckpt.weights.selection import (
    Selection,
    is_writable,
    left_out_note,
    select,
    without,
)
from pttool.core.ckpt.writing.report import COLUMNS, item
from pttool.core.ckpt.writing.safetensors import (
    FOR_TORCH,
    entries_of,
    sharing_notes,
    tied_names,
    write_safetensors,
)
from pttool.core.ckpt.writing.state_dict import write_state_dict
from pttool.core.files import complete_or_absent
from pttool.core.report import Column, Report

SAFETENSORS_NAMES = ("model", ".safetensors")
TORCH_NAMES = ("pytorch_model", ".bin")
SHARD_COLUMNS = (Column("shard", "File"), *COLUMNS)
FIELDS = tuple(column.key for column in SHARD_COLUMNS)
FOOTER = (
    Column("shards", "Files", "count"),
    Column("tensors", "Tensors", "count"),
    Column("parameters", "Elements", "count"),
    Column("size_bytes", "Elements take", "bytes"),
    Column("dropped", "Left behind", "list"),
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Tensors that must lie in one file, and the bytes that they take there."""

    tensors: tuple[Named, ...]
    size_bytes: int


def shard(
    path: Path,
    out_dir: Path,
    *,
    max_size: int,
    key: str | None = None,
    safetensors: bool = True,
) -> Report:
    """Write weights into a new folder, in files of at most `max_size` bytes of elements each.

    A tensor that is larger has a file of its own. Tied tensors are in one file, or with
    safetensors written once and recorded in every file's metadata. Raises as `extract` and
    `to_safetensors` do, UsageError for a folder that exists.
    """
    check_new_folder(out_dir)
    selection = select(path, key=key)
    left_out = [] if safetensors else [n for n in selection.tensors if not is_writable(n)]
    tensors = without(selection, left_out)
    tied = tied_names(tensors) if safetensors else {}
    kept = [named for named in tensors if named[0] not in tied]
    units = [_alone(named) for named in kept] if safetensors else _by_storage(kept)
    shards = list(_filled(units, max_size))
    names = _names(len(shards), SAFETENSORS_NAMES if safetensors else TORCH_NAMES)
    by_name = dict(zip(names, shards, strict=True))
    metadata = {**selection.metadata, **tied, **FOR_TORCH} if safetensors else None
    check_room(out_dir.resolve(), sum(unit.size_bytes for unit in units))
    with new_folder(out_dir) as folder:
        for name, members in by_name.items():
            _write(folder / name, members, metadata, path)
        _write_index(folder, by_name, units, SAFETENSORS_NAMES if safetensors else TORCH_NAMES)
    sharing = sharing_notes(tied, kept) if safetensors else ()
    notes = (*selection.notes, *left_out_note(left_out), *sharing)
    return _report(selection, by_name, out_dir, notes)


def _alone(named: Named) -> _Unit:
    return _Unit((named,), count(named[1]) * item_bytes(named[1].dtype))


def _by_storage(tensors: Sequence[Named]) -> list[_Unit]:
    """Return the tensors that share elements together, in the order of the first of each."""
    layout = laid_out(tensors, compact=True)
    of_storage: dict[str, list[Named]] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for (name, tensor), (_, new) in zip(tensors, layout.tensors, strict=True):
        storages = tuple(piece.storage.key for piece in new.parts or (new,) if piece.storage)
        of_storage.setdefault(storages[0], []).append((name, tensor))
        keys[storages[0]] = (*keys.get(storages[0], ()), *storages)
    return [
        _Unit(tuple(members), sum(layout.sizes[key] for key in set(keys[first])))
        for first, members in of_storage.items()
    ]


def _filled(units: Sequence[_Unit], max_size: int) -> Iterator[tuple[Named, ...]]:
    """Yield the tensors of each file, in their order."""
    members: list[Named] = []
    size = 0
    for unit in units:
        if members and size + unit.size_bytes > max_size:
            yield tuple(members)
            members, size = [], 0
        members += unit.tensors
        size += unit.size_bytes
    yield tuple(members)


def _names(count: int, pattern: tuple[str, str]) -> list[str]:
    stem, suffix = pattern
    return [f"{stem}-{at:05}-of-{count:05}{suffix}" for at in range(1, count + 1)]


def _write(
    path: Path, tensors: Sequence[Named], metadata: Mapping[str, str] | None, source: Path
) -> None:
    with complete_or_absent(path) as stream:
        if metadata is not None:
            write_safetensors(stream, entries_of(tensors, source), metadata, source)
        else:
            write_state_dict(stream, laid_out(tensors, compact=True), stem=path.stem)


def _write_index(
    folder: Path,
    by_name: Mapping[str, Sequence[Named]],
    units: Sequence[_Unit],
    pattern: tuple[str, str],
) -> None:
    index = {
        "metadata": {"total_size": sum(unit.size_bytes for unit in units)},
        "weight_map": {name: shard for shard, found in by_name.items() for name, _ in found},
    }
    with complete_or_absent(folder / f"{''.join(pattern)}.index.json") as stream:
        stream.write(json.dumps(index, indent=2, ensure_ascii=False).encode() + b"\n")


def _report(
    selection: Selection,
    by_name: Mapping[str, Sequence[Named]],
    out_dir: Path,
    notes: tuple[str, ...],
) -> Report:
    found = distinct(named for members in by_name.values() for named in members)
    summary = {
        "folder": str(out_dir),
        "shards": len(by_name),
        "tensors": sum(map(len, by_name.values())),
        "parameters": sum(map(count, found)),
        "size_bytes": sum(count(tensor) * item_bytes(tensor.dtype) for tensor in found),
        "dropped": list(selection.dropped),
    }
    items = [
        {"shard": shard, **item(name, tensor)}
        for shard, members in by_name.items()
        for name, tensor in members
    ]
    return Report(FIELDS, SHARD_COLUMNS, items, summary, FOOTER, notes)
