"""The folder that torch.distributed.checkpoint writes: `.metadata`, and files of chunks.

Source: torch.distributed.checkpoint.metadata and its filesystem storage.
"""

import math
from pathlib import Path

from pttool.core.ckpt.files.payload import read_record
from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.recognition import contiguous_stride, sizes_of
from pttool.core.ckpt.types import Checkpoint, Format, Record, Storage, Tensor, Value
from pttool.errors import InputError

LARGEST_METADATA = 1 << 28


def open_distributed(path: Path) -> Checkpoint:
    """Return what the metadata of a folder lists. Raises InputError for a broken one."""
    file = path / ".metadata"
    size = file.stat().st_size
    record = Record(".metadata", file, 0, size, size)
    pickle = walk(read_record(record, LARGEST_METADATA), record)
    entries = _state(pickle.root).get("state_dict_metadata")
    if not isinstance(entries, Dict):
        raise InputError(f"{file}: lists no tensors", "it is damaged: copy the folder again")
    places = _places(path, _state(pickle.root).get("storage_data"))
    tensors: list[Tensor] = []
    values: list[Value] = []
    for key, node in entries.pairs:
        tensor = _tensor(str(key), node, places)
        if tensor is None:
            values.append(Value((str(key),), places.get((str(key), ()))))
        else:
            tensors.append(tensor)
    records = tuple(dict.fromkeys(places.values()))
    return Checkpoint(
        path=path,
        format=Format.DISTRIBUTED,
        format_version=_text(_state(pickle.root).get("version")),
        root=pickle.root,
        tensors=tuple(tensors),
        values=tuple(values),
        records=(record, *records),
        pickles=(pickle,),
        warnings=tuple(_missing(records)),
    )


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
        if name is None or file is None or not (type(offset) is int and type(length) is int):
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
        if not file.is_file():
            said.append(f"{file.name} is missing")
        elif file.stat().st_size < end:
            said.append(f"{file.name} is cut short: {end - file.stat().st_size:,} bytes missing")
    return said
