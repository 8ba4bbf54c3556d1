"""Tell the tensors among the nodes of a pickle.

Source: the rebuild functions of torch._utils and torch._tensor, and what torch < 0.4 wrote.
"""

from dataclasses import replace
from typing import Any

from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent
from pttool.core.ckpt.tensors.storages import Storages, Typed, is_size
from pttool.core.ckpt.types import Tensor

MAX_DIMENSIONS = 64
DEEPEST_WRAPPING = 8
REBUILD_JAGGED = "torch.nested._internal.nested_tensor._rebuild_njt"
# In the shape of a nested tensor: a size that differs from row to row, or isn't told.
UNKNOWN_SIZE = -1


class NotATensor(Exception):
    """The node isn't what the function wants."""


def recognise_tensor(node: Node, path: tuple[Node, ...], storages: Storages) -> Tensor | None:
    """Return the tensor that a node would become, or None for anything else."""
    if isinstance(node, Persistent) and isinstance(node.id, (str, int)):
        kept = storages.outside(str(node.id))
        return None if kept is None else replace(kept, path=path)
    if not isinstance(node, Call) or not isinstance(node.function, Global):
        return None
    try:
        return replace(_tensor(node, storages, 0), path=path)
    except NotATensor:
        return None


def _tensor(node: Node, storages: Storages, depth: int) -> Tensor:
    if not isinstance(node, Call) or depth > DEEPEST_WRAPPING:
        raise NotATensor
    args = node.args if isinstance(node.args, tuple) else ()
    module, _, name = node.path.rpartition(".")
    if module == "torch._utils" and name in _REBUILDERS:
        least, rebuild = _REBUILDERS[name]
        if len(args) < least:
            raise NotATensor
        return rebuild(args, storages, depth)
    if name == "_rebuild_from_type_v2" and module in ("torch._tensor", "torch.tensor"):
        return _from_type(args, storages, depth)
    if name == "Parameter" and module in ("torch.nn.parameter", "torch.nn"):
        return _old_parameter(node, args, storages, depth)
    if name.endswith("Tensor") and module in ("torch", "torch.cuda"):
        return _old_tensor(node, storages)
    raise NotATensor


def _strided(args: Any, storages: Storages, depth: int) -> Tensor:
    """(storage, offset, size, stride, [requires_grad, hooks, metadata])"""
    typed = _typed(args[0], storages)
    shape, stride = _sizes(args[2]), _sizes(args[3])
    if len(shape) != len(stride):
        raise NotATensor
    return Tensor(
        path=(),
        dtype=typed.dtype,
        shape=shape,
        stride=stride,
        offset=_size(args[1]),
        storage=typed.storage,
        device=typed.storage.device,
        requires_grad=len(args) > 4 and args[4] is True,
        pending=_pending(args[6]) if len(args) == 7 else (),
    )


def _untyped(args: Any, storages: Storages, depth: int) -> Tensor:
    """(storage, offset, size, stride, requires_grad, hooks, dtype, [metadata])"""
    pending = _pending(args[7]) if len(args) > 7 else ()
    return replace(_strided(args[:6], storages, depth), dtype=_dtype(args[6]), pending=pending)


def _quantized(args: Any, storages: Storages, depth: int) -> Tensor:
    """(storage, offset, size, stride, quantizer, requires_grad, hooks)"""
    tensor = _strided(args[:4], storages, depth)
    return replace(tensor, layout="quantized", requires_grad=args[5] is True)


def _parameter(args: Any, storages: Storages, depth: int) -> Tensor:
    """(data, requires_grad, hooks, [state])"""
    data = _tensor(args[0], storages, depth + 1)
    return replace(data, role="parameter", requires_grad=args[1] is True)


def _sparse(args: Any, storages: Storages, depth: int) -> Tensor:
    """(layout, (indices, values, size, [is_coalesced])) or with compressed and plain indices"""
    layout = args[0].args[0] if isinstance(args[0], Call) and args[0].args else ""
    if not isinstance(layout, str) or not isinstance(args[1], tuple):
        raise NotATensor
    pieces = [piece for piece in args[1] if _is_tensor_call(piece)]
    parts = tuple(_tensor(piece, storages, depth + 1) for piece in pieces)
    sizes = [piece for piece in args[1] if isinstance(piece, tuple) or _is_torch_size(piece)]
    if not parts or not sizes:
        raise NotATensor
    return Tensor(
        path=(),
        dtype=parts[-1].dtype,
        shape=_sizes(sizes[-1]),
        device=parts[-1].device,
        layout=str(layout).removeprefix("torch."),
        parts=parts,
    )


def _nested(args: Any, storages: Storages, depth: int) -> Tensor:
    """(buffer, sizes, strides, storage_offsets): only the elements of sizes tell the whole shape"""
    parts = tuple(_tensor(part, storages, depth + 1) for part in args[:4])
    if len(parts[1].shape) != 2:
        raise NotATensor
    rows, dimensions = parts[1].shape
    return Tensor(
        path=(),
        dtype=parts[0].dtype,
        shape=(rows, *(UNKNOWN_SIZE,) * min(dimensions, MAX_DIMENSIONS)),
        device=parts[0].device,
        layout="nested",
        parts=parts,
    )


def _jagged(args: Any, storages: Storages, depth: int) -> Tensor:
    """({values, offsets, lengths, _ragged_idx, requires_grad, ...},), the values without gaps"""
    state = args[0]
    if not isinstance(state, Dict):
        raise NotATensor
    values, offsets = (
        _tensor(state.get(key), storages, depth + 1) for key in ("values", "offsets")
    )
    ragged = state.get("_ragged_idx")
    if len(offsets.shape) != 1 or not (is_size(ragged) and 1 <= ragged <= len(values.shape)):
        raise NotATensor
    inner = [*values.shape[: ragged - 1], UNKNOWN_SIZE, *values.shape[ragged:]]
    return Tensor(
        path=(),
        dtype=values.dtype,
        shape=(max(offsets.shape[0] - 1, 0), *inner),
        device=values.device,
        requires_grad=state.get("requires_grad") is True,
        layout="jagged",
        parts=(values, offsets),
    )


def _meta(args: Any, storages: Storages, depth: int) -> Tensor:
    """(dtype, size, stride, requires_grad)"""
    return Tensor(
        path=(),
        dtype=_dtype(args[0]),
        shape=_sizes(args[1]),
        stride=_sizes(args[2]),
        device="meta",
        layout="meta",
        requires_grad=args[3] is True,
    )


def _wrapper(args: Any, storages: Storages, depth: int) -> Tensor:
    """(class, dtype, size, stride, offset, layout, device, requires_grad): its data is elsewhere"""
    device = args[6].args[0] if isinstance(args[6], Call) and args[6].args else "cpu"
    return Tensor(
        path=(),
        dtype=_dtype(args[1]),
        shape=_sizes(args[2]),
        stride=_sizes(args[3]),
        offset=_size(args[4]),
        device=str(device),
        requires_grad=args[7] is True,
        subclass=_subclass(args[0]),
    )


def _from_host(args: Any, storages: Storages, depth: int) -> Tensor:
    """(tensor on the host, dtype, device, requires_grad)"""
    data = _tensor(args[0], storages, depth + 1)
    return replace(data, device=str(args[2]), requires_grad=args[3] is True)


def _from_type(args: Any, storages: Storages, depth: int) -> Tensor:
    """(function, type, arguments, state)"""
    if len(args) < 4:
        raise NotATensor
    if isinstance(args[0], Global) and args[0].path == REBUILD_JAGGED:
        if not (isinstance(args[2], tuple) and len(args[2]) == 1):
            raise NotATensor
        return _jagged(args[2], storages, depth)
    tensor = _tensor(Call(args[0], args[2]), storages, depth + 1)
    if isinstance(args[1], Global) and args[1].path == "torch.nn.parameter.Parameter":
        return replace(tensor, role="parameter")
    return replace(tensor, subclass=_subclass(args[1]))


def _old_parameter(node: Call, args: Any, storages: Storages, depth: int) -> Tensor:
    """A Parameter made by its class: (data, requires_grad) are arguments, or begin the state."""
    given = node.state if isinstance(node.state, tuple) else args
    if not given:
        raise NotATensor
    data = _tensor(given[0], storages, depth + 1)
    asked = given[1] if len(given) > 1 else True
    return replace(data, role="parameter", requires_grad=asked is True)


def _old_tensor(node: Call, storages: Storages) -> Tensor:
    """A torch.FloatTensor made by its class, whose state is (storage, offset, size, stride)."""
    if not isinstance(node.state, tuple) or len(node.state) != 4:
        raise NotATensor
    return _strided(node.state, storages, 0)


_REBUILDERS = {
    "_rebuild_tensor": (4, _strided),
    "_rebuild_tensor_v2": (6, _strided),
    "_rebuild_tensor_v3": (7, _untyped),
    "_rebuild_qtensor": (7, _quantized),
    "_rebuild_parameter": (3, _parameter),
    "_rebuild_parameter_with_state": (4, _parameter),
    "_rebuild_sparse_tensor": (2, _sparse),
    "_rebuild_sparse_csr_tensor": (2, _sparse),
    "_rebuild_nested_tensor": (4, _nested),
    "_rebuild_meta_tensor_no_storage": (4, _meta),
    "_rebuild_wrapper_subclass": (8, _wrapper),
    "_rebuild_device_tensor_from_cpu_tensor": (4, _from_host),
    "_rebuild_device_tensor_from_numpy": (4, _from_host),
    "_rebuild_xla_tensor": (4, _from_host),
}


def _typed(node: Node, storages: Storages) -> Typed:
    typed = storages.typed(node)
    if typed is None:
        raise NotATensor
    return typed


def _pending(metadata: Node) -> tuple[str, ...]:
    """Return what the metadata of a tensor says is still to be done to its elements."""
    if not isinstance(metadata, Dict):
        return ()
    return tuple(name for name in ("conj", "neg") if metadata.get(name) is True)


def _dtype(node: Node) -> str:
    if not isinstance(node, Global) or node.module != "torch":
        raise NotATensor
    return node.name


def _subclass(node: Node) -> str | None:
    if not isinstance(node, Global) or node.path == "torch.Tensor":
        return None
    return node.path


def _size(value: Node) -> int:
    if not is_size(value):
        raise NotATensor
    return int(value)


def _sizes(node: Node) -> tuple[int, ...]:
    """Return a tuple, list or torch.Size of whole numbers."""
    if _is_torch_size(node):
        node = node.args[0] if node.args else ()
    items = node.items if isinstance(node, List) else node
    if not isinstance(items, (tuple, list)) or len(items) > MAX_DIMENSIONS:
        raise NotATensor
    return tuple(_size(item) for item in items)


def sizes_of(node: Node) -> tuple[int, ...] | None:
    """Return a tuple, list or torch.Size of whole numbers, or None for anything else."""
    try:
        return _sizes(node)
    except NotATensor:
        return None


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps, in elements, of a tensor without gaps."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(size, 1))
    return tuple(reversed(steps)) if shape else ()


def _is_torch_size(node: Node) -> bool:
    return isinstance(node, Call) and node.path == "torch.Size" and isinstance(node.args, tuple)


def _is_tensor_call(node: Node) -> bool:
    return isinstance(node, Call) and not _is_torch_size(node)
