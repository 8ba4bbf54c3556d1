"""Initialise the weights of a model by the rule of He or of Glorot."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.parameter import is_lazy

from pttool.recipes.norms import NORMS

Scheme = Literal["kaiming", "xavier"]


def init_weights(
    model: nn.Module, scheme: Scheme = "kaiming", generator: torch.Generator | None = None
) -> None:
    """Initialise in place the convolutions, linear and normalisation layers of a model.

    "kaiming": convolutions of any dimension, transposed ones too, from a normal distribution with
    He's variance 2 / fan_out, for the ReLU that follows; linear layers with Glorot's. "xavier":
    both with Glorot's 2 / (fan_in + fan_out). Biases become 0, the weights of normalisation layers
    1. Other layers stay as they are. The same generator gives the same tensors, bit for bit.

    Raises ValueError for another scheme; for a weight or bias that is computed, as by pruning,
    weight normalisation and parametrizations, where writing to it would change nothing; and for a
    lazy layer, whose shapes nobody knows yet.

    Sources: He et al., Delving Deep into Rectifiers, 2015; Glorot and Bengio, Understanding the
    difficulty of training deep feedforward neural networks, 2010; torch.nn.init.
    """
    if scheme not in ("kaiming", "xavier"):
        raise ValueError(f"scheme is {scheme!r}: 'kaiming' or 'xavier'")
    for name, layer in model.named_modules():
        if isinstance(layer, (*NORMS, _ConvNd, nn.Linear)):
            _check_own(name, layer)
        if isinstance(layer, NORMS):
            _reset(layer)
        elif isinstance(layer, _ConvNd | nn.Linear):
            _zero_bias(layer)
            weight = _out_first(layer)
            if scheme == "kaiming" and isinstance(layer, _ConvNd):
                nn.init.kaiming_normal_(
                    weight, mode="fan_out", nonlinearity="relu", generator=generator
                )
            else:
                nn.init.xavier_normal_(weight, generator=generator)


def _check_own(name: str, layer: nn.Module) -> None:
    """Raise ValueError unless the weight and bias that a layer has are parameters with a shape."""
    for own in ("weight", "bias"):
        if own in layer._parameters:
            parameter = layer._parameters[own]
            if parameter is not None and is_lazy(parameter):
                raise ValueError(f"{name}: is lazy: call the model once, then initialise it")
        elif hasattr(layer, own):
            raise ValueError(f"{name}: its {own} is computed: initialise it before that")


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
