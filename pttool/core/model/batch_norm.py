"""Batch normalisation on meta, where torch's own kernel is a slow Python decomposition."""

from typing import Any

import torch
from torch import Tensor

BATCH_NORM = torch.ops.aten.native_batch_norm


def batch_norm_on_meta(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    *options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output and the saved mean and inverse deviation, (C,) each in training, else (0,).

    It takes half of the time of a ResNet's forward otherwise. Types other than float32 and float64,
    whose statistics may have another type, go to torch.
    """
    if x.dtype not in (torch.float32, torch.float64):
        operator = BATCH_NORM.default
        result: tuple[Tensor, Tensor, Tensor] = operator(
            x, weight, bias, running_mean, running_var, training, *options
        )
        return result
    statistics = (x.shape[1],) if training else (0,)
    return torch.empty_like(x), x.new_empty(statistics), x.new_empty(statistics)
