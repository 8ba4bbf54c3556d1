"""What torch and numpy say of the tensors that a loaded object holds.

Paths are those of `pickles.nodes.children`: an object is what its `__reduce_ex__` says,
so a whole module's weight is at ("@state", "_parameters", "weight"). A tensor that several places
hold is listed at each. Keys that are no plain values stand as OBJECT_KEY.
"""

import copyreg
import types
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

OBJECT_KEY = "@object"
UNKNOWN_SIZE = -1
Key = Hashable
TensorPath = tuple[Key, ...]
_PLAIN = (type(None), bool, int, float, str, bytes)
_LEAVES = (
    *_PLAIN,
    complex,
    bytearray,
    type,
    np.generic,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.UntypedStorage,
    torch.storage.TypedStorage,
    types.FunctionType,
    types.BuiltinFunctionType,
)


@dataclass(frozen=True)
class OracleTensor:
    """A tensor as its own library describes it; numbers of elements unless named bytes.

    `storage_bytes` is None where the file holds no storage of it (meta, sparse, jagged), and
    `storage` is the same number for tensors that share one. `layout` is torch's, or quantized,
    nested, jagged, meta. `parts` are the tensors that a sparse or nested one is made of, in the
    order in which they are pickled, each under the path of the whole.
    """

    path: TensorPath
    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] = ()
    storage_offset: int = 0
    storage_bytes: int | None = None
    requires_grad: bool = False
    is_parameter: bool = False
    layout: str = "strided"
    parts: tuple["OracleTensor", ...] = ()
    library: str = "torch"
    storage: int | None = None
    value: Any = field(default=None, compare=False, repr=False)


def walked(root: object) -> list[OracleTensor]:
    """Return the tensors and arrays that an object holds, in the order of its pickle."""
    storages: dict[int, int] = {}
    return list(_walk(root, (), set(), storages))


def _walk(
    node: Any, path: TensorPath, above: set[int], storages: dict[int, int]
) -> Iterator[OracleTensor]:
    if isinstance(node, torch.Tensor):
        yield described(node, path, storages)
    elif isinstance(node, np.ndarray):
        yield array(node, path)
    elif not isinstance(node, _LEAVES) and id(node) not in above:
        for key, child in _children(node):
            yield from _walk(child, (*path, plain_key(key)), above | {id(node)}, storages)


def plain_key(key: Any) -> Key:
    """Return a key that a test can compare."""
    if isinstance(key, tuple):
        return tuple(plain_key(one) for one in key)
    return key if type(key) in _PLAIN else OBJECT_KEY


def _children(node: Any) -> Iterator[tuple[Any, Any]]:
    if type(node) in (dict, OrderedDict):
        yield from node.items()
        if vars_of := getattr(node, "__dict__", None):
            yield "@state", vars_of
    elif type(node) in (list, tuple, set, frozenset):
        yield from enumerate(node)
    else:
        yield from _reduced(node)


def _reduced(node: Any) -> Iterator[tuple[Any, Any]]:
    reduced = node.__reduce_ex__(2)
    if isinstance(reduced, str):
        return
    function, args, state, items, pairs = (*reduced, None, None, None)[:5]
    if function is getattr(copyreg, "__newobj__"):  # noqa: B009
        args = args[1:]
    if args:
        yield "@args", args
    if state is not None:
        yield "@state", state
    yield from enumerate(items or ())
    yield from pairs or ()


def described(tensor: torch.Tensor, path: TensorPath, storages: dict[int, int]) -> OracleTensor:
    """Return what torch says of a tensor."""
    about = _Described(tensor, path, storages)
    layout = about.layout()
    is_strided = layout in ("strided", "quantized", "meta")
    return OracleTensor(
        path=path,
        shape=about.shape(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        stride=tuple(tensor.stride()) if is_strided else (),
        storage_offset=int(tensor.storage_offset()) if is_strided else 0,
        storage_bytes=tensor.untyped_storage().nbytes() if about.has_storage() else None,
        requires_grad=tensor.requires_grad,
        is_parameter=isinstance(tensor, torch.nn.Parameter),
        layout=layout,
        parts=tuple(described(part, path, storages) for part in about.parts()),
        storage=about.storage(),
        value=tensor,
    )


@dataclass
class _Described:
    tensor: torch.Tensor
    path: TensorPath
    storages: dict[int, int]

    def layout(self) -> str:
        tensor = self.tensor
        if tensor.is_meta:
            return "meta"
        if tensor.is_quantized:
            return "quantized"
        if tensor.is_nested and tensor.layout == torch.strided:
            return "nested"
        return str(tensor.layout).removeprefix("torch.")

    def has_storage(self) -> bool:
        return self.layout() in ("strided", "quantized")

    def storage(self) -> int | None:
        if not self.has_storage():
            return None
        pointer = self.tensor.untyped_storage()._cdata
        return self.storages.setdefault(pointer, len(self.storages))

    def shape(self) -> tuple[int, ...]:
        """Return the sizes, with -1 for those that differ between the rows of a nested tensor."""
        tensor = self.tensor
        if self.layout() == "nested":
            rows = tensor._nested_tensor_size().tolist()
            columns = [set(column) for column in zip(*rows, strict=True)]
            return (len(rows), *(one.pop() if len(one) == 1 else UNKNOWN_SIZE for one in columns))
        sizes = tuple(tensor.shape)
        return tuple(size if type(size) is int else UNKNOWN_SIZE for size in sizes)

    def parts(self) -> tuple[torch.Tensor, ...]:
        tensor, layout = self.tensor, self.layout()
        if layout == "sparse_coo":
            return tensor._indices(), tensor._values()
        if layout in ("sparse_csr", "sparse_bsr"):
            return tensor.crow_indices(), tensor.col_indices(), tensor.values()
        if layout in ("sparse_csc", "sparse_bsc"):
            return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
        if layout in ("nested", "jagged"):
            return _nested_parts(tensor)
        return ()


def _nested_parts(tensor: Any) -> tuple[torch.Tensor, ...]:
    if tensor.layout == torch.strided:
        sizes, strides = tensor._nested_tensor_size(), tensor._nested_tensor_strides()
        return tensor.values(), sizes, strides, tensor._nested_tensor_storage_offsets()
    cached = tensor._metadata_cache.values()
    return (tensor._values, tensor._offsets, *cached)


def array(value: "np.ndarray[Any, Any]", path: TensorPath) -> OracleTensor:
    """Return what numpy says of an array."""
    strides = tuple(step // value.itemsize if value.itemsize else 0 for step in value.strides)
    return OracleTensor(
        path=path,
        shape=value.shape,
        dtype=str(value.dtype),
        stride=strides,
        storage_bytes=value.nbytes,
        library="numpy",
        value=value,
    )
