"""From the reference that a pickle makes to a storage, to the bytes that a container keeps."""

from collections.abc import Callable
from dataclasses import dataclass

from pttool.core.ckpt.pickles.nodes import Call, Global, Node, Persistent, Span
from pttool.core.ckpt.tensors.dtypes import STORAGE_DTYPES, item_bytes
from pttool.core.ckpt.types import Record, Storage, Tensor

MAX_NUMEL = 1 << 62


@dataclass(frozen=True, slots=True)
class Typed:
    """A storage and the type of its elements."""

    storage: Storage
    dtype: str


class Storages:
    """The storages of one checkpoint, each made once.

    `find` gives the record of a key, or None; `nested` opens a torch file whose bytes lie inside
    the pickle, as those of a storage pickled without torch.save do; `outside` gives the tensor of
    a key, where the container keeps whole tensors.
    """

    def __init__(
        self,
        find: Callable[[str], Record | None],
        nested: Callable[[bytes | Span], Typed | None] = lambda content: None,
        outside: Callable[[str], Tensor | None] = lambda key: None,
        big_endian: bool = False,
    ) -> None:
        self.find = find
        self.outside = outside
        self.big_endian = big_endian
        self.nested = nested
        self.known: dict[tuple[str, str, int], Storage] = {}

    def typed(self, node: Node) -> Typed | None:
        """Return the storage that a node refers to, or None if it isn't one.

        Source: torch.serialization's persistent_id: ("storage", class, key, location, numel), in
        legacy files with the metadata of a view: (key, offset, numel), counted in elements.
        """
        if isinstance(node, Call):
            return self._other(node)
        if not isinstance(node, Persistent) or not isinstance(node.id, tuple):
            return None
        if not (len(node.id) in (5, 6) and node.id[0] == "storage"):
            return None
        _, kind, key, device, numel, *view = node.id
        if not (isinstance(kind, Global) and isinstance(key, (str, int)) and is_size(numel)):
            return None
        dtype = STORAGE_DTYPES.get(kind.name, "")
        if not dtype or not isinstance(device, str):
            return None
        name = str(key)
        size = numel * item_bytes(dtype)
        if view and view[0] is not None:
            return self._view(name, device, dtype, view[0])
        return Typed(self._storage(name, str(device), size), dtype)

    def _storage(self, key: str, device: str, size: int) -> Storage:
        identity = (key, device, size)
        if identity not in self.known:
            self.known[identity] = Storage(key, device, size, self.find(key), self.big_endian)
        return self.known[identity]

    def _view(self, root: str, device: str, dtype: str, view: Node) -> Typed | None:
        if not (isinstance(view, tuple) and len(view) == 3 and all(map(is_size, view[1:]))):
            return None
        key, offset, numel = str(view[0]), view[1], view[2]
        size, skipped = numel * item_bytes(dtype), offset * item_bytes(dtype)
        identity = (key, device, size)
        if identity not in self.known:
            record = self.find(root)
            if record is not None:
                left = max(0, min(size, record.size_bytes - skipped))
                record = Record(key, record.file, record.offset + skipped, left, left)
            self.known[identity] = Storage(key, device, size, record, self.big_endian)
        return Typed(self.known[identity], dtype)

    def _other(self, node: Call) -> Typed | None:
        """Return a storage in a raw pickle, which torch.storage._load_from_bytes would load."""
        args = node.args if isinstance(node.args, tuple) else ()
        if node.path != "torch.storage._load_from_bytes" or len(args) != 1:
            return None
        content = args[0]
        if isinstance(content, Call) and content.path == "_codecs.encode" and content.args:
            content = content.args[0]
        return self.nested(content) if isinstance(content, (bytes, Span)) else None


def is_size(value: Node) -> bool:
    """Whether a node is a whole number that can count elements."""
    return type(value) is int and 0 <= value <= MAX_NUMEL
