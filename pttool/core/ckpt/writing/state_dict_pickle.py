"""The pickle of a state dict, as torch.save writes it.

Source: torch.Tensor._reduce_ex_internal and torch.serialization.persistent_id. Only opcodes and
globals that torch's weights_only unpickler takes are used.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import pack

from pttool.core.ckpt.pickles.edits import literal
from pttool.core.ckpt.tensors.dtypes import STORAGE_DTYPES, item_bytes
from pttool.core.ckpt.types import Storage, Tensor
from pttool.core.ckpt.weights.layout import Named

_CLASSES = {
    dtype: name for name, dtype in STORAGE_DTYPES.items() if not name.endswith("UntypedStorage")
}


def state_dict_pickle(tensors: Sequence[Named]) -> bytes:
    """Return the pickle of an OrderedDict of plain tensors on the CPU.

    The keys and sizes of their storages are those of the new file. A sparse tensor is written as
    its parts.
    """
    writer = _Writer(_typed_classes(tensors))
    writer.state_dict(tensors)
    return b"".join(writer.parts)


def _typed_classes(tensors: Sequence[Named]) -> dict[str, str]:
    """Return the class of each storage whose elements are all of one type that has a class.

    torch looks at the first class that it meets only, so other storages must be untyped.
    """
    classes: dict[str, set[str | None]] = {}
    for _, tensor in tensors:
        for piece in tensor.parts or (tensor,):
            storage = _storage(piece)
            is_even = storage.size_bytes % item_bytes(piece.dtype) == 0
            found = _CLASSES.get(piece.dtype) if is_even else None
            classes.setdefault(storage.key, set()).add(found)
    only = {key: next(iter(found)) for key, found in classes.items() if len(found) == 1}
    return {key: found for key, found in only.items() if found is not None}


def _storage(tensor: Tensor) -> Storage:
    if tensor.storage is None:
        raise ValueError(f"{tensor.path}: is {tensor.layout}, without a storage")
    return tensor.storage


class _Writer:
    """Collects opcodes. Globals and the words of storages are memoised, as they recur."""

    def __init__(self, classes: Mapping[str, str]) -> None:
        self.classes = classes
        self.parts = [b"\x80\x02"]
        self.memo: dict[bytes, int] = {}

    def state_dict(self, tensors: Iterable[Named]) -> None:
        self._ordered_dict()
        self._put(b"(")
        for name, tensor in tensors:
            self._put(literal(name))
            self._tensor(tensor)
        self._put(b"u.")

    def _put(self, opcodes: bytes) -> None:
        self.parts.append(opcodes)

    def _once(self, opcodes: bytes) -> None:
        """Push what these opcodes push, from the memo if it was pushed before."""
        if opcodes in self.memo:
            self._put(b"h" + bytes([self.memo[opcodes]]))
            return
        self.memo[opcodes] = len(self.memo)
        self._put(opcodes + b"q" + bytes([self.memo[opcodes]]))

    def _global(self, module: str, name: str) -> None:
        self._once(f"c{module}\n{name}\n".encode())

    def _ordered_dict(self) -> None:
        self._global("collections", "OrderedDict")
        self._put(b")R")

    def _sizes(self, sizes: Sequence[int]) -> None:
        opcodes = b"".join(map(_number, sizes))
        if len(sizes) <= 3:
            self._put(opcodes + (b")", b"\x85", b"\x86", b"\x87")[len(sizes)])
        else:
            self._put(b"(" + opcodes + b"t")

    def _tensor(self, tensor: Tensor) -> None:
        if tensor.parts:
            self._sparse(tensor)
            return
        storage = _storage(tensor)
        is_typed = storage.key in self.classes
        self._global("torch._utils", f"_rebuild_tensor_v{2 if is_typed else 3}")
        self._put(b"(")
        self._persistent(storage, tensor.dtype)
        self._put(_number(tensor.offset))
        self._sizes(tensor.shape)
        self._sizes(tensor.stride)
        self._put(b"\x89")
        self._ordered_dict()
        if not is_typed:
            self._global("torch", tensor.dtype)
        if tensor.pending:
            self._put(b"}(" + b"".join(literal(name) + b"\x88" for name in tensor.pending) + b"u")
        self._put(b"tR")

    def _persistent(self, storage: Storage, dtype: str) -> None:
        self._put(b"(")
        self._once(literal("storage"))
        if storage.key in self.classes:
            self._global("torch", self.classes[storage.key])
            numel = storage.size_bytes // item_bytes(dtype)
        else:
            self._global("torch.storage", "UntypedStorage")
            numel = storage.size_bytes
        self._put(literal(storage.key))
        self._once(literal("cpu"))
        self._put(_number(numel) + b"tQ")

    def _sparse(self, tensor: Tensor) -> None:
        """_rebuild_sparse_tensor(layout, (indices, values, size)), compressed ones with both."""
        self._global("torch._utils", "_rebuild_sparse_tensor")
        self._global("torch.serialization", "_get_layout")
        self._put(literal(f"torch.{tensor.layout}") + b"\x85R(")
        for part in tensor.parts:
            self._tensor(part)
        self._global("torch", "Size")
        self._sizes(tensor.shape)
        self._put(b"\x85Rt\x86R")


def _number(value: int) -> bytes:
    if value < 1 << 8:
        return pack("<BB", ord("K"), value)
    if value < 1 << 16:
        return pack("<BH", ord("M"), value)
    if value < 1 << 31:
        return pack("<Bi", ord("J"), value)
    encoded = value.to_bytes(value.bit_length() // 8 + 1, "little")
    return pack("<BB", 0x8A, len(encoded)) + encoded
