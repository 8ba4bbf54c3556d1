"""Initialise the weights of a model by the rule of He or of Glorot."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.utils.parametrize import is_parametrized

Scheme = Literal["kaiming", "xavier"]

NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


def init_weights(
    model: nn.Module, scheme: Scheme = "kaiming", generator: torch.Generator | None = None
) -> None:
    """Initialise in place the convolutions, linear and normalisation layers of a model.

    "kaiming": convolutions of any dimension, transposed ones too, from a normal distribution with
    He's variance 2 / fan_out, for the ReLU that follows; linear layers with Glorot's. "xavier":
    both with Glorot's 2 / (fan_in + fan_out). Biases become 0, the weights of normalisation layers
    1. Other layers stay as they are. The same generator gives the same tensors, bit for bit.

    Raises ValueError for another scheme, and for a weight that a parametrization computes, where
    writing to it would change nothing.

    Sources: He et al., Delving Deep into Rectifiers, 2015; Glorot and Bengio, Understanding the
    difficulty of training deep feedforward neural networks, 2010; torch.nn.init.
    """
    if scheme not in ("kaiming", "xavier"):
        raise ValueError(f"scheme is {scheme!r}: 'kaiming' or 'xavier'")
    for name, layer in model.named_modules():
        if isinstance(layer, NORMS):
            _reset(layer)
        elif isinstance(layer, _ConvNd | nn.Linear):
            if is_parametrized(layer, "weight"):
                raise ValueError(f"{name}: its weight is parametrized: initialise it before that")
            _zero_bias(layer)
            weight = _out_first(layer)
            if scheme == "kaiming" and isinstance(layer, _ConvNd):
                nn.init.kaiming_normal_(
                    weight, mode="fan_out", nonlinearity="relu", generator=generator
                )
            else:
                nn.init.xavier_normal_(weight, generator=generator)


def _reset(norm: nn.Module) -> None:
    """Set the weight to 1 and the bias to 0; a layer with affine=False has neither."""
    weight = norm._parameters.get("weight")
    if weight is not None:
        nn.init.ones_(weight)
    _zero_bias(norm)


def _zero_bias(layer: nn.Module) -> None:
    bias = layer._parameters.get("bias")
    if bias is not None:
        nn.init.zeros_(bias)


def _out_first(layer: _ConvNd | nn.Linear) -> Tensor:
    """Return the weight with its outputs first, as nn.init counts fans: transposed ones' aren't."""
    if isinstance(layer, _ConvTransposeNd):
        return layer.weight.detach().transpose(0, 1)
    return layer.weight
