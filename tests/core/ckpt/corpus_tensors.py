"""Every sort of tensor that torch can save."""

from typing import Any

import torch
from torch import nn

from tests.core.ckpt.corpus_kinds import PICKLE_WAYS, TORCH_WAYS, ZIP, ZIP_AND_LEGACY, Theme
from tests.core.ckpt.corpus_missing import Labelled

THEME = Theme()
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
FLOATING = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64")
WORDS = ("uint64", "uint32", "uint16", "bits8", "bits16", "bits1x8", "complex32")
SMALL_FLOATS = (
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float4_e2m1fn_x2"),
)


def typed_storage(tensor: torch.Tensor) -> object:
    """Return a tensor's memory as torch named it before 2.0, with a dtype."""
    storage: Any = torch.storage.TypedStorage
    return storage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)


def of_type(name: str) -> torch.Tensor:
    """Return a tensor of 2 x 3 elements of a dtype, whose bytes count from zero."""
    dtype: torch.dtype = getattr(torch, name)
    if dtype == torch.bool:
        return torch.tensor([[True, False, True], [False, True, True]])
    return torch.arange(6 * dtype.itemsize, dtype=torch.uint8).view(dtype).view(2, 3)


@THEME.saved("dtypes", ZIP_AND_LEGACY)
def _dtypes() -> object:
    """The dtypes that have a storage class of their own."""
    return {name: of_type(name) for name in (*WHOLE, *FLOATING)}


@THEME.saved("new_dtypes", {"pt": ZIP, "cuda0_p4.pt": TORCH_WAYS["cuda3_p4.pt"]})
def _new_dtypes() -> object:
    """The dtypes saved as untyped storages, which torch can't read from its legacy format."""
    return {name: of_type(name) for name in (*WORDS, *SMALL_FLOATS)}


@THEME.saved("views", {**ZIP_AND_LEGACY, "p2.pkl": PICKLE_WAYS["p2.pkl"]})
def _views() -> object:
    weight = torch.randn(10, 4)
    return {
        "embedding": weight,
        "head": weight,
        "row": weight[1],
        "transposed": weight.t(),
        "sliced": weight[::2, 1:3],
        "expanded": weight[:1].expand(3, 4),
        "scalar": torch.tensor(3.0),
        "empty": torch.empty(0, 5),
        "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
        "channels_last": torch.randn(1, 2, 3, 3).to(memory_format=torch.channels_last),
        "parameter": nn.Parameter(weight),
        "frozen": nn.Parameter(weight[2:], requires_grad=False),
    }


@THEME.saved("views_of_bytes", {"pt": ZIP})
def _views_of_bytes() -> object:
    """One storage under three dtypes: torch lets only untyped storages do that."""
    words = of_type("uint16")
    return {
        "uint16": words,
        "float8": words.view(torch.float8_e4m3fn),
        "uint8": words.view(torch.uint8),
    }


@THEME.saved("slice_bloat", ZIP_AND_LEGACY)
def _slice_bloat() -> object:
    return {"slice": torch.zeros(100, 100)[:2], "tail": torch.zeros(1000)[-3:]}


@THEME.saved("empty_storages", ZIP_AND_LEGACY)
def _empty_storages() -> object:
    return {"a": torch.empty(0), "b": torch.empty(0, 3), "c": torch.ones(1), "d": torch.empty(0)}


@THEME.saved("lazy_bits", ZIP_AND_LEGACY)
def _lazy_bits() -> object:
    """Tensors whose elements are conjugated or negated only when read."""
    return {
        "conj": torch.randn(3, dtype=torch.complex64).conj(),
        "neg": torch._neg_view(torch.randn(3)),
    }


@THEME.saved("gradients", ZIP_AND_LEGACY)
def _gradients() -> object:
    leaf = torch.randn(2, requires_grad=True)
    parameter = nn.Parameter(torch.randn(2))
    parameter.grad = torch.ones(2)
    return {"leaf": leaf, "result": leaf * 2, "parameter": parameter, "detached": leaf.detach()}


@THEME.saved("sparse", {**ZIP_AND_LEGACY, "cuda0.pt": TORCH_WAYS["cuda0.pt"]})
def _sparse() -> object:
    eye = torch.eye(4)
    indices = torch.tensor([[0, 1, 1], [1, 0, 0]])
    return {
        "coo": eye.to_sparse(),
        "uncoalesced": torch.sparse_coo_tensor(indices, torch.ones(3), (3, 3)),
        "hybrid": torch.sparse_coo_tensor(indices, torch.ones(3, 2), (3, 3, 2)),
        "csr": eye.to_sparse_csr(),
        "csc": eye.to_sparse_csc(),
        "bsr": eye.to_sparse_bsr((2, 2)),
        "bsc": eye.to_sparse_bsc((2, 2)),
    }


@THEME.saved("quantized", ZIP_AND_LEGACY)
def _quantized() -> object:
    values, scales = torch.randn(2, 4), torch.tensor([0.1, 0.2], dtype=torch.float64)
    zeros = torch.tensor([0, 1])
    floats = (scales.float(), zeros.float(), 0)
    return {
        "per_tensor": torch.quantize_per_tensor(values, 0.1, 3, torch.qint8),
        "int32": torch.quantize_per_tensor(values, 0.1, 0, torch.qint32),
        "per_channel": torch.quantize_per_channel(values, scales, zeros, 0, torch.quint8),
        "float_zeros": torch.quantize_per_channel(values, *floats, torch.quint8),
        "four_bits": torch.quantize_per_channel(values, *floats, torch.quint4x2),
    }


@THEME.saved("meta", ZIP_AND_LEGACY)
def _meta() -> object:
    empty = torch.empty(4, 3, device="meta")
    return {"meta": empty, "view": empty.t(), "parameter": nn.Parameter(empty)}


@THEME.saved("nested", {"pt": ZIP})
def _nested() -> object:
    return {"strided": torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])}


@THEME.saved("jagged", {"pt": ZIP})
def _jagged() -> object:
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    return {"jagged": torch.nested.nested_tensor(parts, layout=torch.jagged)}


@THEME.saved("subclass", TORCH_WAYS)
def _subclass() -> object:
    return {"labelled": torch.randn(3).as_subclass(Labelled)}


@THEME.saved("tensor_attributes", ZIP_AND_LEGACY)
def _tensor_attributes() -> object:
    tensor, parameter = torch.randn(3), nn.Parameter(torch.randn(2))
    vars(tensor)["label"] = "cuda:0"
    vars(parameter)["module.label"] = "module.label"
    buffer = nn.Buffer(torch.ones(2))
    return {"tensor": tensor, "parameter": parameter, "buffer": buffer}


@THEME.saved("bare_tensor", {**TORCH_WAYS, **PICKLE_WAYS})
def _bare_tensor() -> object:
    return torch.arange(10)


@THEME.saved("bare_parameter", {**ZIP_AND_LEGACY, "p4.pkl": PICKLE_WAYS["p4.pkl"]})
def _bare_parameter() -> object:
    return nn.Parameter(torch.ones(2, 2))


@THEME.saved("bare_storage")
def _bare_storage() -> object:
    """Bytes without a dtype, which torch can't read from its legacy format."""
    return torch.ones(3).untyped_storage()


@THEME.saved("typed_storage", {**ZIP_AND_LEGACY, "p2.pkl": PICKLE_WAYS["p2.pkl"]})
def _typed_storage() -> object:
    return {"storage": typed_storage(torch.ones(2)), "tensor": torch.ones(2)}


@THEME.saved("storage_and_tensor", ZIP_AND_LEGACY)
def _storage_and_tensor() -> object:
    """A storage of floats that a tensor uses too, named as floats both times."""
    tensor = torch.ones(3)
    return [tensor, typed_storage(tensor)]
