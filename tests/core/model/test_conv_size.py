"""`conv-size` against torch's own layers."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn

from pttool.core.model.conv_size import conv_size
from pttool.errors import UsageError

kernels, strides, paddings, dilations = (st.integers(low, 5) for low in (1, 1, 0, 1))


@given(st.integers(1, 64), kernels, strides, paddings, dilations)
def test_convolutions(size: int, k: int, s: int, p: int, d: int) -> None:
    assume(size + 2 * p >= d * (k - 1) + 1)
    layer = nn.Conv1d(1, 1, k, s, p, d, device="meta")
    expected = layer(torch.empty(1, 1, size, device="meta")).shape[-1]
    assert conv_size([f"conv:k{k},s{s},p{p},d{d}"], [size]).summary["output_size"] == [expected]


@given(st.integers(1, 64), kernels, strides, paddings, dilations, st.booleans())
def test_pools(size: int, k: int, s: int, p: int, d: int, ceil: bool) -> None:
    assume(p <= k // 2)
    assume(size + 2 * p >= d * (k - 1) + 1)
    layer = nn.MaxPool1d(k, s, p, d, ceil_mode=ceil)
    expected = layer(torch.ones(1, 1, size)).shape[-1]
    text = f"pool:k{k},s{s},p{p},d{d}" + (",ceil" if ceil else "")
    assert conv_size([text], [size]).summary["output_size"] == [expected]


@given(st.integers(1, 64), kernels, strides, paddings, dilations, st.integers(0, 4))
def test_transposed_convolutions(size: int, k: int, s: int, p: int, d: int, op: int) -> None:
    assume(op < max(s, d))
    assume((size - 1) * s - 2 * p + d * (k - 1) + op + 1 > 0)
    layer = nn.ConvTranspose1d(1, 1, k, s, p, op, dilation=d, device="meta")
    expected = layer(torch.empty(1, 1, size, device="meta")).shape[-1]
    text = f"convt:k{k},s{s},p{p},d{d},op{op}"
    assert conv_size([text], [size]).summary["output_size"] == [expected]


def test_receptive_field_and_stride_of_the_first_layers_of_alexnet() -> None:
    """Worked by hand, as in the Distill article's formula: r += (k - 1) * product of strides."""
    chain = ["conv:k11,s4,p2", "pool:k3,s2", "conv:k5,p2", "pool:k3,s2", "conv:k3,p1"]
    report = conv_size(chain, [224, 224])
    assert [item["output_size"][0] for item in report.items] == [224, 55, 27, 27, 13, 13]
    assert [item["receptive_field"][0] for item in report.items] == [1, 11, 19, 51, 67, 99]
    assert [item["stride"][0] for item in report.items] == [1, 4, 8, 8, 16, 16]


def _reach(layers: nn.Module, size: int) -> int:
    """Return how far apart the inputs lie that the middle output depends on, by its gradient."""
    x = torch.zeros(1, 1, size, requires_grad=True)
    out = layers(x)
    out[0, 0, out.shape[-1] // 2].backward()
    assert x.grad is not None
    reached = x.grad.flatten().nonzero()
    return int(reached.max() - reached.min()) + 1


@pytest.mark.parametrize(
    ("chain", "layers"),
    [
        (["conv:k3", "conv:k3,s2", "conv:k5"], [(3, 1), (3, 2), (5, 1)]),
        (["conv:k3,d2", "conv:k3,d4"], [(3, 1, 2), (3, 1, 4)]),
    ],
)
def test_receptive_field_by_gradient(chain: list[str], layers: list[tuple[int, ...]]) -> None:
    convolutions = [
        nn.Conv1d(1, 1, k, s, dilation=d[0] if d else 1, bias=False) for k, s, *d in layers
    ]
    for convolution in convolutions:
        nn.init.ones_(convolution.weight)
    expected = _reach(nn.Sequential(*convolutions), 99)
    assert conv_size(chain, [99]).summary["receptive_field"] == [expected]


@pytest.mark.parametrize(
    "text",
    ["conv", "conv:", "dense:k3", "conv:k0", "conv:k3,s0", "conv:k3x3x3", "conv:x3", "conv:k3,ceil",
     "conv:k-1", "conv:k99", ""],
)  # fmt: skip
def test_what_makes_no_layer_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        conv_size([text], [32, 32])
