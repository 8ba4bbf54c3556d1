"""Bilinear pooling, with a signed square root and L2 normalisation."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional


def bilinear_pool(x: Tensor, eps: float = 1e-5) -> Tensor:
    """Return the (N, C*C) bilinear features of (N, C, H, W) feature maps, in their dtype.

    The mean over places of the outer product of the channels, then sign(y) * sqrt(|y| + eps), then
    L2 normalisation. An input of zeros gives zeros, and `eps` keeps its gradient finite. Half types
    are computed in float32, under autocast too: their sums overflow, and `eps` is nearly 0.

    Raises ValueError for an input that isn't (N, C, H, W), H or W of 0, or an `eps` that isn't
    above 0.

    Source: Lin, RoyChowdhury, Maji: Bilinear CNN Models for Fine-grained Visual Recognition, 2015.
    """
    if x.dim() != 4:
        raise ValueError(f"bilinear_pool takes (N, C, H, W), not {tuple(x.shape)}")
    if eps <= 0:
        raise ValueError(f"eps is {eps}: the gradient at 0 is finite only with one above 0")
    places = x.shape[2] * x.shape[3]
    if places == 0:
        raise ValueError(f"{tuple(x.shape)} has no places to take the mean of")
    exact = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    with _without_autocast(x.device):
        pooled = torch.einsum("nchw,ndhw->ncd", exact, exact).flatten(1) / places
    rooted = pooled.sign() * (pooled.abs() + eps).sqrt()
    return functional.normalize(rooted).to(x.dtype)


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()  # as for the meta device
