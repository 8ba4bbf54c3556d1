"""How many multiply-accumulates each operator does: torch's registry, and what it leaves out.

torch's `flop_registry` counts 2 floating-point operations per multiply-accumulate, and so do the
formulas here; `macs` are half of them. They count matrix products, convolutions and attention.
"""

import logging
import re
from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

# It logs, where triton is missing, what is no news to anyone.
logging.getLogger("torch.utils.flop_counter").disabled = True
from torch.utils.flop_counter import flop_registry  # noqa: E402

aten = torch.ops.aten
Formula = Callable[..., int]


def formulas() -> dict[Any, Formula]:
    """Return the formula of every operator that multiplies and adds, by its overload packet."""
    return {
        **flop_registry,
        **_LEFT_OUT_BY_TORCH,
        **_quantized_formulas(),
        **_torchvision_formulas(),
    }


def is_uncounted(packet: Any) -> bool:
    """Tell whether an operator without a formula may multiply and add a lot.

    That is so for operators that aren't PyTorch's own, of which nothing is known, and for those
    whose name says that they multiply, transform or decompose whole matrices.
    """
    namespace, _, name = str(packet).rpartition(".")
    if namespace not in ("aten", "prims", "prim", "profiler"):
        return f"{namespace}.{name}" not in _FOREIGN_WITHOUT_PRODUCTS
    return bool(_PRODUCTS.search(name)) and not _WITHOUT_PRODUCTS.search(name)


def check_dtypes(packet: Any, args: tuple[Any, ...]) -> None:
    """Raise RuntimeError, as a device would, for a product of tensors of different types.

    torch's meta kernels let them through.
    """
    if packet in _SAME_TYPE:
        types = list(dict.fromkeys(arg.dtype for arg in args if isinstance(arg, Tensor)))
        if len(types) > 1:
            raise RuntimeError(f"expected tensors of one dtype, but got {types[0]} and {types[1]}")


_SAME_TYPE = frozenset((
    aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.addmv, aten.convolution,
    aten._convolution,
))  # fmt: skip
_PRODUCTS = re.compile(
    "mm|mv|conv|rnn|lstm|gru|attention|linear|fft|linalg|cholesky|triangular|^lu_|^qr|svd|[cp]dist"
)
_WITHOUT_PRODUCTS = re.compile(
    "upsample|convert|thnn_fused|vector_norm|linear_backward|linalg_(cross|diagonal)"
)
_FOREIGN_WITHOUT_PRODUCTS = (
    "torchvision.nms", "torchvision.roi_align", "torchvision.roi_pool",
    "quantized.add", "quantized.add_relu", "quantized.cat", "quantized.mul",
)  # fmt: skip


def _mv(matrix: Tensor, vector: Tensor, *_: Any, **__: Any) -> int:
    return 2 * matrix.numel()


def _dot(left: Tensor, right: Tensor, *_: Any, **__: Any) -> int:
    return 2 * left.numel()


def _addmv(start: Tensor, matrix: Tensor, *_: Any, **__: Any) -> int:
    return 2 * matrix.numel()


def _addmm(start: Tensor, left: Tensor, right: Tensor, *_: Any, **__: Any) -> int:
    """(m, k) @ (k, n), or the sum over a batch of such products."""
    return 2 * left.numel() * right.shape[-1]


def _addr(start: Tensor, left: Tensor, right: Tensor, *_: Any, **__: Any) -> int:
    return 2 * left.numel() * right.numel()


def _trilinear(
    left: Tensor, weight: Tensor, right: Tensor, expand_left: list[int], *_: Any, **__: Any
) -> int:
    """nn.Bilinear: every weight once for each row of the batch."""
    return 2 * weight.numel() * left.shape[0]


def _cdist(left: Tensor, right: Tensor, *_: Any, **__: Any) -> int:
    """(…, p, m) and (…, r, m): m differences for each of p x r pairs."""
    return 2 * left.numel() * right.shape[-2]


def _attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    """Scores (E products for each query and key) and their weighted sum (E_v)."""
    return 2 * prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _rnn_layer(x: Tensor, w_input: Tensor, w_hidden: Tensor, *_: Any, **__: Any) -> int:
    """One layer over (time, batch, features): both weight matrices at each step."""
    return 2 * x.shape[0] * x.shape[1] * (w_input.numel() + w_hidden.numel())


def _cudnn_rnn(x: Tensor, weights: list[Tensor], *_: Any, **__: Any) -> int:
    """Every matrix of every layer and direction at each step of each sequence."""
    steps = x.numel() // x.shape[-1]
    return 2 * steps * sum(weight.numel() for weight in weights if weight.ndim == 2)


def _deform_conv2d(x: Tensor, weight: Tensor, *_: Any, out_val: Tensor, **__: Any) -> int:
    return 2 * out_val.numel() * prod(weight.shape[1:])


def _quantized_linear(x: Tensor, *_: Any, out_val: Tensor, **__: Any) -> int:
    return 2 * x.numel() * out_val.shape[-1]


def _quantized_conv(x: Tensor, packed: Any, *_: Any, out_val: Tensor, **__: Any) -> int:
    weight: Tensor = packed.unpack()[0]
    return 2 * out_val.numel() * prod(weight.shape[1:])


_LEFT_OUT_BY_TORCH: dict[Any, Formula] = {
    aten.mv: _mv,
    aten.addmv: _addmv,
    aten.dot: _dot,
    aten.vdot: _dot,
    aten.addr: _addr,
    aten.addbmm: _addmm,
    aten.addmm_: _addmm,
    aten.baddbmm_: _addmm,
    aten.addbmm_: _addmm,
    aten.addmv_: _addmv,
    aten.addr_: _addr,
    aten._addmm_activation: _addmm,
    aten._trilinear: _trilinear,
    aten._cdist_forward: _cdist,
    aten._euclidean_dist: _cdist,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten.mkldnn_rnn_layer: _rnn_layer,
    aten._cudnn_rnn: _cudnn_rnn,
}


def _quantized_formulas() -> dict[Any, Formula]:
    """Those that this build of torch has."""
    formulas: dict[str, Formula] = {
        "linear": _quantized_linear, "linear_relu": _quantized_linear,
        "linear_dynamic": _quantized_linear, "linear_relu_dynamic": _quantized_linear,
        "conv1d": _quantized_conv, "conv2d": _quantized_conv, "conv3d": _quantized_conv,
        "conv1d_relu": _quantized_conv, "conv2d_relu": _quantized_conv,
        "conv3d_relu": _quantized_conv,
    }  # fmt: skip
    operators = torch.ops.quantized
    return {getattr(operators, n): f for n, f in formulas.items() if hasattr(operators, n)}


def _torchvision_formulas() -> dict[Any, Formula]:
    try:
        return {torch.ops.torchvision.deform_conv2d: _deform_conv2d}
    except AttributeError:  # torchvision is not imported, so no model can use it
        return {}
