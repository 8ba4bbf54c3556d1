"""What torch.save wrote before 1.6: five pickles, then the storages one after another.

Source: torch.serialization._legacy_save and _legacy_load.
"""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pttool.core.ckpt.files.payload import mapped, opened
from pttool.core.ckpt.formats.signatures import TORCH_MAGIC_NUMBER
from pttool.core.ckpt.pickles.nodes import Dict, Global, List, Node
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.pickles.walker import Buffer
from pttool.core.ckpt.tensors.dtypes import STORAGE_DTYPES, item_bytes
from pttool.core.ckpt.tensors.leaves import Leaves
from pttool.core.ckpt.tensors.storages import Storages
from pttool.core.ckpt.types import Checkpoint, Format, Pickled, Record, Tensor, Value
from pttool.errors import InputError

PROTOCOL_VERSION = 1001
PARTS = ("magic number", "protocol version", "system", "object", "storage keys")


@dataclass(frozen=True, slots=True)
class Legacy:
    """The pickles of a legacy file, and where each storage's elements lie."""

    pickles: tuple[Pickled, ...]
    records: Mapping[str, Record]
    end: int

    @property
    def object(self) -> Pickled:
        """The pickle of what was saved."""
        return self.pickles[3]


def open_legacy(path: Path) -> Checkpoint:
    """Return what a legacy file holds. Raises InputError for a broken or cut one."""
    with opened(path) as file, mapped(path) as whole:
        legacy = read_legacy(whole, path, 0, file)
        size = len(whole)
    leaves = Leaves(legacy.object.root, Storages(legacy.records.get))
    found = list(leaves)
    warnings = list(leaves.warnings)
    if legacy.end < size:
        warnings.append(f"{size - legacy.end:,} bytes follow the last storage")
    return Checkpoint(
        path=path,
        format=Format.TORCH_LEGACY,
        format_version=str(legacy.pickles[1].root),
        root=legacy.object.root,
        tensors=tuple(leaf for leaf in found if isinstance(leaf, Tensor)),
        values=tuple(leaf for leaf in found if isinstance(leaf, Value)),
        leaves=tuple(found),
        records=tuple(legacy.records.values()),
        pickles=legacy.pickles,
        facts=_facts(legacy.pickles[2].root),
        warnings=tuple(warnings),
    )


def read_legacy(buffer: Buffer, path: Path, start: int, descriptor: int | None) -> Legacy:
    """Walk the pickles of a legacy file at `start` and find its storages.

    Sizes are read through `descriptor`, since a map of the file would be charged for every page
    around them; without one, from the buffer. Raises InputError for a broken or cut file.
    """
    pickles: list[Pickled] = []
    position = start
    for name in PARTS:
        pickle = walk(buffer, Record(name, path, position, 0, 0), start=position)
        pickles.append(pickle)
        position = pickle.end
    if pickles[0].root != TORCH_MAGIC_NUMBER or not isinstance(pickles[4].root, List):
        raise InputError(f"{path}: has no header of torch.save", "it is damaged: copy it again")
    if pickles[1].root != PROTOCOL_VERSION:
        raise InputError(
            f"{path}: is of protocol version {pickles[1].root}, not {PROTOCOL_VERSION}",
            "save it again with a current torch",
        )
    dtypes = _dtypes(pickles[3])
    records: dict[str, Record] = {}
    for node in pickles[4].root.items:
        key = str(node)
        if key not in dtypes:
            raise InputError(
                f"{path}: storage {key} is of no known type", "it is damaged: copy it again"
            )
        count = _count(buffer, position, descriptor)
        size = count * item_bytes(dtypes[key])
        missing = position + 8 + size - len(buffer)
        if count < 0 or missing > 0:
            raise InputError(
                f"{path}: is cut short in storage {key}: {max(missing, 0):,} bytes are missing",
                "copy or download it again",
            )
        records[key] = Record(key, path, position + 8, size, size)
        position += 8 + size
    return Legacy(tuple(pickles), records, position)


def object_start(buffer: Buffer, path: Path, start: int) -> int:
    """Return where the pickle of what was saved begins. Raises InputError as read_legacy does."""
    for name in PARTS[:3]:
        start = walk(buffer, Record(name, path, start, 0, 0), start=start).end
    return start


def _count(buffer: Buffer, position: int, descriptor: int | None) -> int:
    """Return the number of elements before a storage, or -1 at the end of the file."""
    here = slice(position, position + 8)
    raw = buffer[here] if descriptor is None else os.pread(descriptor, 8, position)
    return int(struct.unpack("<q", raw)[0]) if len(raw) == 8 else -1


def _dtypes(pickle: Pickled) -> dict[str, str]:
    """Return the element type of each storage that the object refers to."""
    dtypes = {}
    for node in pickle.persistent_ids:
        if isinstance(node, tuple) and len(node) >= 3 and isinstance(node[1], Global):
            dtype = STORAGE_DTYPES.get(node[1].name)
            if dtype is not None:
                dtypes[str(node[2])] = dtype
    return dtypes


def _facts(system: Node) -> dict[str, str]:
    """Return what the writer said of its machine."""
    pairs = system.pairs if isinstance(system, Dict) else []
    little = next((value for key, value in pairs if key == "little_endian"), True)
    return {"byteorder": "little" if little else "big"}
