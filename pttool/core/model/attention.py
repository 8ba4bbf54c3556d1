"""Attention on meta as it runs for real: fused, so that its scores are never stored."""

import contextlib
import sys
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

NAME = "scaled_dot_product_attention"
_by_torch = F.scaled_dot_product_attention


@contextlib.contextmanager
def fused_attention() -> Iterator[None]:
    """Run attention on meta, in the block, by the operator that the CPU would choose.

    By itself torch falls back to plain products on meta: the MACs are the same, but the scores
    would count as activations, and as saved for the backward. The function is replaced in its
    module, where torch's own layers look it up, and in those that imported it by name: a
    TorchFunctionMode is not asked inside torch's layers.
    """
    holders = [
        m for m in list(sys.modules.values()) if getattr(m, "__dict__", {}).get(NAME) is _by_torch
    ]
    for module in holders:
        setattr(module, NAME, _attention)
    try:
        yield
    finally:
        for module in holders:
            setattr(module, NAME, _by_torch)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if not _is_fused(query, key, value, attn_mask, dropout_p, enable_gqa):
        return _by_torch(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if query.ndim == 3:
        query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale).squeeze(0)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        attn_mask = torch.empty_like(attn_mask, dtype=query.dtype)
    out: Tensor = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )[0]
    return out


def _is_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    enable_gqa: bool,
) -> bool:
    """Tell whether torch's CPU kernel takes the call (aten/src/ATen/native/transformers)."""
    batch = query.shape[:-3] == key.shape[:-3] == value.shape[:-3]
    heads = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] or (batch and enable_gqa)
    return (
        query.is_meta
        and torch._C._get_flash_sdp_enabled()  # the CPU's switch too
        and dropout_p == 0
        and query.ndim == key.ndim == value.ndim
        and query.ndim in (3, 4)
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and heads
        and query.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        and not (attn_mask is not None and (attn_mask.requires_grad or attn_mask.ndim < 2))
    )
