"""The tar that torch wrote before 0.2: storages, tensors, and a pickle that refers to them.

Source: torch.serialization._load's legacy_load, and the ustar format of POSIX.1-1988.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pttool.core.ckpt.files.payload import mapped
from pttool.core.ckpt.formats.tar_directory import read_members
from pttool.core.ckpt.pickles.nodes import Global, List, Node
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.tensors.dtypes import STORAGE_DTYPES, item_bytes
from pttool.core.ckpt.tensors.leaves import Leaves
from pttool.core.ckpt.tensors.recognition import MAX_DIMENSIONS
from pttool.core.ckpt.tensors.storages import Storages, Typed, is_size
from pttool.core.ckpt.types import Checkpoint, Format, Pickled, Record, Storage, Tensor, Value
from pttool.errors import InputError

MEMBERS = ("storages", "tensors", "pickle")
HINT = "it is damaged or cut: copy or download it again"


def parts(path: Path) -> dict[str, Record]:
    """Return the three members by name. Raises InputError where one is missing."""
    found = {record.name.removeprefix("./"): record for record in read_members(path)}
    missing = [name for name in MEMBERS if name not in found]
    if missing:
        raise InputError(f"{path}: is a tar without {' and '.join(missing)}", HINT)
    return found


def open_legacy_tar(path: Path) -> Checkpoint:
    """Return what a tar of torch holds. Raises InputError for a broken or cut one."""
    with mapped(path) as whole:
        found = parts(path)
        tar = Tar(whole, path)
        storages = tar.storages(found["storages"].offset)
        tensors = tar.tensors(found["tensors"].offset, storages)
        object_ = walk(whole, found["pickle"], start=found["pickle"].offset)
    leaves = Leaves(object_.root, Storages(lambda key: None, outside=tensors.get))
    listed = list(leaves)
    return Checkpoint(
        path=path,
        format=Format.TORCH_TAR,
        root=object_.root,
        tensors=tuple(leaf for leaf in listed if isinstance(leaf, Tensor)),
        values=tuple(leaf for leaf in listed if isinstance(leaf, Value)),
        leaves=tuple(listed),
        records=tuple(tar.records),
        pickles=(*tar.pickles, object_),
        warnings=tuple(leaves.warnings),
    )


class Tar:
    """Reads the members, which are pickles with plain numbers between them."""

    def __init__(self, whole: mmap.mmap, path: Path) -> None:
        self.whole = whole
        self.path = path
        self.position = 0
        self.pickles: list[Pickled] = []
        self.records: list[Record] = []

    def storages(self, start: int) -> dict[str, Typed]:
        """Return the storages by key: (key, location, class), then a count and the elements."""
        self.position = start
        found: dict[str, Typed] = {}
        for _ in range(self._count()):
            key, device, kind = self._tuple(3)
            dtype = STORAGE_DTYPES.get(kind.name, "") if isinstance(kind, Global) else ""
            size = self._number() * item_bytes(dtype)
            if not dtype or not 0 <= size <= len(self.whole) - self.position:
                raise self._damaged()
            record = Record(str(key), self.path, self.position, size, size)
            self.position += size
            self.records.append(record)
            found[str(key)] = Typed(Storage(str(key), str(device), size, record), dtype)
        self._views(found)
        return found

    def _views(self, found: dict[str, Typed]) -> None:
        """Add the storages that are parts of others: (key, key of the other, offset, count)."""
        views = self._pickle()
        if not isinstance(views, List):
            raise self._damaged()
        for view in views.items:
            root = found.get(str(view[1])) if isinstance(view, tuple) and len(view) == 4 else None
            if root is None or root.storage.record is None or not all(map(is_size, view[2:])):
                raise self._damaged()
            skipped, size = (count * item_bytes(root.dtype) for count in view[2:])
            record = root.storage.record
            if skipped + size > record.size_bytes:
                raise self._damaged()
            offset = record.offset + skipped
            part = replace(record, offset=offset, size_bytes=size, stored_bytes=size)
            key = str(view[0])
            found[key] = replace(root, storage=Storage(key, root.storage.device, size, part))

    def tensors(self, start: int, storages: Mapping[str, Typed]) -> dict[str, Tensor]:
        """Return the tensors by key: (key, storage, class), then dimensions, sizes and strides."""
        self.position = start
        found: dict[str, Tensor] = {}
        for _ in range(self._count()):
            key, storage, _kind = self._tuple(3)
            dimensions = self._number() & 0xFFFFFFFF
            typed = storages.get(str(storage))
            if typed is None or dimensions > MAX_DIMENSIONS:
                raise self._damaged()
            shape = tuple(self._size() for _ in range(dimensions))
            stride = tuple(self._size() for _ in range(dimensions))
            found[str(key)] = Tensor(
                path=(),
                dtype=typed.dtype,
                shape=shape,
                stride=stride,
                offset=self._size(),
                storage=typed.storage,
                device=typed.storage.device,
            )
        return found

    def _pickle(self) -> Node:
        pickle = walk(
            self.whole, Record("pickle", self.path, self.position, 0, 0), start=self.position
        )
        self.position = pickle.end
        self.pickles.append(pickle)
        return pickle.root

    def _count(self) -> int:
        count = self._pickle()
        if type(count) is not int or not 0 <= count <= len(self.whole):
            raise self._damaged()
        return count

    def _tuple(self, length: int) -> tuple[Node, ...]:
        node = self._pickle()
        if not isinstance(node, tuple) or len(node) != length:
            raise self._damaged()
        return node

    def _size(self) -> int:
        number = self._number()
        if not is_size(number):
            raise self._damaged()
        return number

    def _number(self) -> int:
        raw = self.whole[self.position : self.position + 8]
        if len(raw) < 8:
            raise self._damaged()
        self.position += 8
        return int(struct.unpack("<q", raw)[0])

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.path}: is a damaged tar of torch, at byte {self.position:,}", HINT
        )
