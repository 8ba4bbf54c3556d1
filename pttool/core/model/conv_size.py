"""`conv-size`: output size, receptive field and stride of a chain of convolutions and pools.

Pure arithmetic on text. Sizes as torch.nn.Conv2d, MaxPool2d and ConvTranspose2d document them;
receptive field and stride as in Araujo, Norris and Sim, "Computing Receptive Fields of
Convolutional Neural Networks", Distill 2019.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pttool.core.report import Column, Report
from pttool.errors import UsageError

COLUMNS = (
    Column("layer", "Layer"),
    Column("output_size", "Output", "shape"),
    Column("receptive_field", "Receptive field", "shape"),
    Column("stride", "Stride", "shape"),
)
KINDS = {
    "conv": "conv", "pool": "pool", "maxpool": "pool", "avgpool": "pool",
    "convt": "transposed", "deconv": "transposed", "convtranspose": "transposed",
}  # fmt: skip
GRAMMAR = "KIND:kK,sS,pP,dD as conv:k7,s2,p3 pool:k3,s2,p1 convt:k4,s2,p1"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the chain along one dimension of space."""

    kind: str
    kernel: int
    stride: int
    padding: int
    dilation: int
    output_padding: int
    ceil: bool

    @property
    def window(self) -> int:
        """How many positions the kernel spans."""
        return self.dilation * (self.kernel - 1) + 1

    def output_size(self, size: int) -> int:
        """Return the output size for an input of `size`; below 1 where the window doesn't fit."""
        if self.kind == "transposed":
            return (size - 1) * self.stride - 2 * self.padding + self.window + self.output_padding
        room = size + 2 * self.padding - self.window
        if room < 0:
            return 0
        steps = -(-room // self.stride) if self.ceil else room // self.stride
        # A pool's last window must start inside the input or its left padding.
        if self.ceil and steps * self.stride >= size + self.padding:
            steps -= 1
        return steps + 1


def conv_size(chain: Sequence[str], size: Sequence[int]) -> Report:
    """Return the size after each layer of `chain` for an input of spatial `size`.

    A layer is written as `conv:k7,s2,p3`, with k, s, p, d, op (output padding) and `ceil`; 3x5
    gives two dimensions different values. Raises UsageError for a layer that can't be read or does
    not fit.
    """
    sizes = list(size)
    fields = [1] * len(sizes)
    strides = [Fraction(1)] * len(sizes)
    items = [_item("input", sizes, fields, strides)]
    for text in chain:
        for axis, layer in enumerate(_parse(text, len(sizes))):
            fields[axis] += _growth(layer, strides[axis])
            strides[axis] *= _step(layer)
            sizes[axis] = layer.output_size(sizes[axis])
        items.append(_item(text, sizes, fields, strides))
        if min(sizes) < 1:
            before = items[-2]["output_size"]
            raise UsageError(f"{text}: its window doesn't fit into {before}", "pad, or drop it")
    summary = {key: items[-1][key] for key in ("output_size", "receptive_field", "stride")}
    return Report(tuple(items[0]), COLUMNS, items, summary)


def _growth(layer: Layer, stride: Fraction) -> int:
    """Return how much wider the receptive field gets, in pixels of the first input."""
    if layer.kind == "transposed":
        inputs = -(-layer.window // layer.stride)
        return int((inputs - 1) * stride)
    return int((layer.window - 1) * stride)


def _step(layer: Layer) -> Fraction:
    return Fraction(1, layer.stride) if layer.kind == "transposed" else Fraction(layer.stride)


def _item(
    layer: str, sizes: list[int], fields: list[int], strides: list[Fraction]
) -> dict[str, object]:
    return {
        "layer": layer,
        "output_size": list(sizes),
        "receptive_field": list(fields),
        "stride": [int(s) if s.denominator == 1 else float(s) for s in strides],
    }


def _parse(text: str, dimensions: int) -> list[Layer]:
    kind, _, options = text.partition(":")
    if kind not in KINDS:
        raise UsageError(f"layer {text!r}: no kind {kind!r}", GRAMMAR)
    values: dict[str, list[int]] = {}
    ceil = False
    for option in filter(None, options.split(",")):
        match = re.fullmatch(r"(k|s|p|d|op)([0-9]{1,9}(?:x[0-9]{1,9})*)", option)
        if option == "ceil" and KINDS[kind] == "pool":
            ceil = True
        elif match is None or match[1] in values:
            raise UsageError(f"layer {text!r}: can't read {option!r}", GRAMMAR)
        else:
            values[match[1]] = _per_dimension(text, match[2], dimensions)
    return [_layer(text, KINDS[kind], values, ceil, axis) for axis in range(dimensions)]


def _per_dimension(text: str, value: str, dimensions: int) -> list[int]:
    numbers = [int(number) for number in value.split("x")]
    if len(numbers) not in (1, dimensions):
        raise UsageError(f"layer {text!r}: {value} is not for {dimensions} dimensions", GRAMMAR)
    return numbers * dimensions if len(numbers) == 1 else numbers


def _layer(text: str, kind: str, values: dict[str, list[int]], ceil: bool, axis: int) -> Layer:
    def value(name: str, otherwise: int) -> int:
        return values[name][axis] if name in values else otherwise

    if "k" not in values:
        raise UsageError(f"layer {text!r}: has no kernel size", GRAMMAR)
    kernel = value("k", 1)
    # A pool's windows lie side by side unless told otherwise.
    stride = value("s", kernel if kind == "pool" else 1)
    layer = Layer(kind, kernel, stride, value("p", 0), value("d", 1), value("op", 0), ceil)
    if kind == "pool" and 2 * layer.padding > layer.kernel:
        raise UsageError(f"layer {text!r}: a pool is padded by at most half its kernel", GRAMMAR)
    if kind == "transposed" and layer.output_padding >= max(layer.stride, layer.dilation, 1):
        raise UsageError(f"layer {text!r}: op is less than the stride or the dilation", GRAMMAR)
    if min(layer.kernel, layer.stride, layer.dilation) < 1:
        raise UsageError(f"layer {text!r}: kernel, stride and dilation are at least 1", GRAMMAR)
    return layer
