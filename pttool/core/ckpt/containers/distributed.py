"""The folder that torch.distributed.checkpoint writes: `.metadata`, and files of chunks.

Source: torch.distributed.checkpoint.metadata and its filesystem storage.
"""

import math
import os
from dataclasses import replace
from pathlib import Path

from pttool.core.ckpt.containers.distributed_chunks import pickle_in
from pttool.core.ckpt.files.payload import opened, read_record
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Span
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.leaves import Leaves
from pttool.core.ckpt.tensors.recognition import contiguous_stride, sizes_of
from pttool.core.ckpt.tensors.storages import Storages, is_size
from pttool.core.ckpt.types import Checkpoint, Format, Record, Storage, Tensor, Value
from pttool.errors import InputError

LARGEST_METADATA = 1 << 28
# Of the pickles of all values that are no tensors: what a hostile folder can make a reader hold.
MOST_VALUE_BYTES = 1 << 21
COST_OF_A_BROKEN_ONE = MOST_VALUE_BYTES >> 4
LEFT_UNREAD = f"values beyond {MOST_VALUE_BYTES >> 20} MiB are not read"


def open_distributed(path: Path) -> Checkpoint:
    """Return what the metadata of a folder lists. Raises InputError for a broken one."""
    file = path / ".metadata"
    with opened(file) as descriptor:
        size = os.fstat(descriptor).st_size
    record = Record(".metadata", file, 0, size, size)
    pickle = walk(read_record(record, LARGEST_METADATA), record)
    entries = _state(pickle.root).get("state_dict_metadata")
    if not isinstance(entries, Dict):
        raise InputError(f"{file}: lists no tensors", "it is damaged: copy the folder again")
    places = _places(path, _state(pickle.root).get("storage_data"))
    tensors: list[Tensor] = []
    values = _Values()
    for key, node in entries.pairs:
        tensor = _tensor(str(key), node, places)
        if tensor is None:
            values.add(str(key), places.get((str(key), ())))
        else:
            tensors.append(tensor)
    records = tuple(dict.fromkeys(places.values()))
    return Checkpoint(
        path=path,
        format=Format.DISTRIBUTED,
        format_version=_text(_state(pickle.root).get("version")),
        root=pickle.root,
        tensors=tuple(tensors),
        values=tuple(values.found),
        records=(record, *records),
        pickles=(pickle,),
        warnings=(*_missing(records), *values.warnings),
    )


class _Values:
    """Reads what the chunks hold that is no tensor, up to a number of bytes in all."""

    def __init__(self) -> None:
        self.found: list[Value] = []
        self.warnings: dict[str, None] = {}
        self.bytes_left = MOST_VALUE_BYTES
        self.steps = 0

    def add(self, key: str, chunk: Record | None) -> None:
        """Add what a chunk holds; what isn't read, or can't be, as so many bytes."""
        if chunk is None:
            self.found.append(Value((key,), None))
        elif not self._is_read(key, chunk):
            self.found.append(Value((key,), Span(0, chunk.size_bytes)))

    def _is_read(self, key: str, chunk: Record) -> bool:
        if not os.path.isfile(chunk.file):
            return False
        if chunk.size_bytes > self.bytes_left:
            self.warnings[LEFT_UNREAD] = None
            return False
        try:
            self._walk(key, chunk)
        except InputError as error:
            reason = error.message.removeprefix(f"{chunk.file}: ")
            self.warnings[f"{quoted(key)} can't be read: {reason}"] = None
            self.bytes_left -= COST_OF_A_BROKEN_ONE
            return False
        return True

    def _walk(self, key: str, chunk: Record) -> None:
        pickle = pickle_in(chunk)
        self.bytes_left -= max(chunk.size_bytes, pickle.end)
        leaves = Leaves(pickle.root, Storages(lambda key: None))
        leaves.steps = self.steps  # of all values together
        listed = list(leaves)
        self.steps = leaves.steps
        self.found += [
            replace(leaf, path=(key, *leaf.path), pickle=pickle.record)
            for leaf in listed
            if isinstance(leaf, Value)
        ]
        self.warnings |= leaves.warnings
        tensors = sum(isinstance(leaf, Tensor) for leaf in listed)
        if tensors:
            self.warnings[f"{tensors:,} tensors within {quoted(key)} are not listed"] = None


def _state(node: Node) -> Dict:
    state = node.state if isinstance(node, Call) else None
    return state if isinstance(state, Dict) else Dict()


def _places(folder: Path, node: Node) -> dict[tuple[str, tuple[int, ...]], Record]:
    """Return where each chunk lies, by the tensor's name and the chunk's first element.

    A chunk is a whole torch file inside of a bigger one.
    """
    places = {}
    for index, info in node.pairs if isinstance(node, Dict) else ():
        key, place = _state(index), _state(info)
        name, file = _text(key.get("fqn")), _text(place.get("relative_path"))
        offset, length = place.get("offset"), place.get("length")
        if name is None or file is None or not (is_size(offset) and is_size(length)):
            continue
        if Path(file).is_absolute() or ".." in Path(file).parts:
            raise InputError(f"{folder}: names a file outside of it: {file}", "it is not to trust")
        start = sizes_of(key.get("offset")) or ()
        places[name, start] = Record(name, folder / file, offset, length, length)
    return places


def _tensor(
    key: str, node: Node, places: dict[tuple[str, tuple[int, ...]], Record]
) -> Tensor | None:
    """Return a tensor and its chunks, or None for an entry of plain bytes."""
    entry = _state(node)
    shape, dtype = sizes_of(entry.get("size")), _dtype(entry.get("properties"))
    chunks = entry.get("chunks")
    if shape is None or dtype is None or not isinstance(chunks, List):
        return None
    parts = []
    for chunk in chunks.items:
        start = sizes_of(_state(chunk).get("offsets")) or ()
        size = sizes_of(_state(chunk).get("sizes")) or ()
        record = places.get((key, start))
        needed = math.prod(size) * item_bytes(dtype)
        name = f"{key}@{start}" if any(start) else key
        parts.append(
            Tensor(
                path=(start,),
                dtype=dtype,
                shape=size,
                stride=contiguous_stride(size),
                storage=Storage(name, "cpu", needed, record),
            )
        )
    whole = parts[0].storage if len(parts) == 1 else None
    return Tensor((key,), dtype, shape, contiguous_stride(shape), storage=whole, parts=tuple(parts))


def _dtype(properties: Node) -> str | None:
    """Return the first property, which is the element type."""
    state = properties.state if isinstance(properties, Call) else None
    first = state[0] if isinstance(state, tuple) and state else None
    if isinstance(state, Dict):
        first = state.get("dtype")
    return first.name if isinstance(first, Global) else None


def _text(node: Node) -> str | None:
    return str(node) if isinstance(node, str) else None


def _missing(records: tuple[Record, ...]) -> list[str]:
    """Return what to say of files that are not there, or too short for their chunks."""
    ends: dict[Path, int] = {}
    for record in records:
        ends[record.file] = max(ends.get(record.file, 0), record.offset + record.stored_bytes)
    said = []
    for file, end in ends.items():
        if not os.path.isfile(file):
            said.append(f"{quoted(file.name)} is missing")
        elif (size := os.path.getsize(file)) < end:
            said.append(f"{quoted(file.name)} is cut short: {end - size:,} bytes missing")
    return said
