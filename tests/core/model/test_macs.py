"""MACs and bytes against published figures and hand-worked examples."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention

from pttool.core.model.inputs import Inputs
from pttool.core.model.isolation import borrowed
from pttool.core.model.trace import Trace, trace

DEVICES = ["meta", "cpu"]


class Calls(nn.Module):
    """Turns a function of tensors into a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> object:
        return self.function(*tensors)


def _trace(module: nn.Module, *shapes: tuple[int, ...], device: str = "meta") -> Trace:
    inputs = Inputs(tuple(torch.ones(shape, device=device) for shape in shapes))
    with borrowed(module, device=device, training=False):
        found = trace(module, inputs, device=device, grad=False)
    if found.error is not None:
        raise found.error
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("macs", "function", "shapes"),
    [
        # each count is that of the products in the definition of the operator
        (8 * 4, torch.mv, [(8, 4), (4,)]),
        (4, torch.dot, [(4,), (4,)]),
        (3 * 4 * 5, torch.matmul, [(3, 4), (4, 5)]),
        (8 * 4, torch.addmv, [(8,), (8, 4), (4,)]),
        (3 * 4, torch.addr, [(3, 4), (3,), (4,)]),
        (2 * 3 * 4 * 5, torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
        (2 * 3 * 4 * 5, torch.addbmm, [(3, 5), (2, 3, 4), (2, 4, 5)]),
        (3 * 4 * 5, torch._addmm_activation, [(5,), (3, 4), (4, 5)]),
        (30 * 40 * 8, torch.cdist, [(1, 30, 8), (1, 40, 8)]),
        (64 * 6 * 4 * 9, lambda x, o, w: torchvision.ops.deform_conv2d(x, o, w, padding=1),
         [(1, 4, 8, 8), (1, 18, 8, 8), (6, 4, 3, 3)]),
        # scores and weighted sums: 2 x heads x queries x keys x width
        (2 * 8 * 16 * 16 * 32, F.scaled_dot_product_attention, [(1, 8, 16, 32)] * 3),
        (2 * 8 * 16 * 16 * 32,
         lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
         [(1, 8, 16, 32), (1, 2, 16, 32)]),
    ],
)  # fmt: skip
def test_functions(
    macs: int, function: Callable[..., object], shapes: list[tuple[int, ...]], device: str
) -> None:
    assert _trace(Calls(function), *shapes, device=device).flops == 2 * macs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("macs", "module", "shapes"),
    [
        (32, nn.Linear(4, 8), [(4,)]),
        (36 * 4 * 27, nn.Conv2d(3, 4, 3), [(3, 8, 8)]),
        (2 * 64 * 8 * 16 * 16, nn.ConvTranspose2d(8, 16, 4, 2, 1), [(2, 8, 8, 8)]),
        (2 * 4 * 5 * 6, nn.Bilinear(4, 5, 6), [(2, 4), (2, 5)]),
        # gates x steps x sequences x (inputs + hidden), the second layer fed by the first
        (4 * 64 * 16 * 2 * ((32 + 64) + (64 + 64)), nn.LSTM(32, 64, 2, batch_first=True),
         [(2, 16, 32)]),
        (3 * 64 * 16 * 2 * (32 + 64), nn.GRU(32, 64, batch_first=True), [(2, 16, 32)]),
        # projections, feed-forward and attention over 16 tokens of 2 sequences
        (2 * (16 * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 16 * 16 * 32),
         nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), [(2, 16, 32)]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_modules(macs: int, module: nn.Module, shapes: list[tuple[int, ...]], device: str) -> None:
    assert _trace(module, *shapes, device=device).flops == 2 * macs


class Attends(nn.Module):
    """Attention by a name that was imported before, with options of its own."""

    def __init__(self, heads: int = 4, key_heads: int = 4, **options: Any) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(8, 8 * heads), nn.Linear(8, 8 * key_heads)
        self.heads, self.key_heads, self.options = heads, key_heads, options

    def forward(self, x: Tensor) -> Tensor:
        query = self.query(x).unflatten(-1, (self.heads, 8)).transpose(1, 2)
        key = self.key(x).unflatten(-1, (self.key_heads, 8)).transpose(1, 2)
        if self.heads == 1:
            query, key = query.squeeze(1), key.squeeze(1)
        return scaled_dot_product_attention(query, key, key, **self.options)


@pytest.mark.parametrize(
    "module",
    [
        Attends(),
        Attends(is_causal=True),
        pytest.param(
            Attends(1, 1),
            marks=pytest.mark.skipif(
                torch.__version__ < "2.14", reason="older kernels store the scores of 3-d calls"
            ),
        ),
        Attends(4, 2, enable_gqa=True),
        Attends(dropout_p=0.1),
        Attends(attn_mask=torch.ones(5, 5, dtype=torch.bool)),
        nn.MultiheadAttention(8, 2, batch_first=True),
    ],
    ids=["plain", "causal", "3-d", "gqa", "dropout", "mask", "module"],
)
def test_attention_saves_on_meta_what_it_saves_on_the_cpu(module: nn.Module) -> None:
    saved = []
    for device in DEVICES:
        count = 3 if isinstance(module, nn.MultiheadAttention) else 1
        inputs = Inputs((torch.ones(2, 5, 8, device=device),) * count)
        with borrowed(module, device=device, training=True):
            found = trace(module, inputs, device=device, grad=True)
        assert found.error is None
        saved.append(found.activations.saved_for_backward)
    assert saved[0] == saved[1] > 0


def test_what_can_not_be_counted_is_named() -> None:
    found = _trace(Calls(torch.fft.fft), (64,))
    assert (found.flops, found.uncounted) == (0, {"aten._fft_r2c"})
    assert _trace(Calls(torch.relu), (64,)).uncounted == set()


def test_peak_activations_of_a_chain() -> None:
    """Two of a chain's outputs are alive at once: the one read and the one written."""
    chain = nn.Sequential(*[nn.Linear(1000, 1000) for _ in range(5)])
    assert _trace(chain, (10, 1000)).activations.peak == 2 * 10 * 1000 * 4
