"""Bilinear features equal those of a batched matrix product."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from pttool.recipes import bilinear_pool


def _by_bmm(x: Tensor) -> Tensor:
    flat = x.flatten(2)
    pooled = torch.bmm(flat, flat.transpose(1, 2)).flatten(1) / flat.shape[2]
    return functional.normalize(torch.sign(pooled) * torch.sqrt(torch.abs(pooled) + 1e-5))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 1, 1, 1), (3, 8, 7, 7), (0, 2, 3, 3)])
def test_equals_the_matrix_product(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(bilinear_pool(x), _by_bmm(x), rtol=1e-12, atol=1e-15)


def test_zeros_stay_finite_forward_and_backward() -> None:
    x = torch.zeros(2, 3, 4, 4, requires_grad=True)
    y = bilinear_pool(x)
    torch.autograd.backward(y.sum())
    assert torch.equal(y, torch.zeros(2, 9))
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_a_feature_has_length_one_and_the_dtype_of_the_input() -> None:
    y = bilinear_pool(torch.randn(2, 4, 3, 3).bfloat16())
    assert y.dtype is torch.bfloat16
    torch.testing.assert_close(y.float().norm(dim=1), torch.ones(2), rtol=0.01, atol=0)


@pytest.mark.parametrize(
    ("shape", "eps"), [((3, 4, 4), 1e-5), ((1, 3, 4, 4), 0.0), ((1, 3, 0, 4), 1e-5)]
)
def test_what_makes_no_sense_is_refused(shape: tuple[int, ...], eps: float) -> None:
    with pytest.raises(ValueError, match=r"bilinear_pool takes|eps is|no places"):
        bilinear_pool(torch.zeros(shape), eps)


@pytest.mark.parametrize("value", [0.0, 10.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_half_precision_neither_overflows_nor_loses_eps(value: float, dtype: torch.dtype) -> None:
    x = torch.full((1, 4, 28, 28), value, dtype=dtype, requires_grad=True)
    with torch.autocast("cpu", torch.float16):
        y = bilinear_pool(x)
    torch.autograd.backward(y.sum())
    assert y.dtype is dtype
    # All 16 features are equal, and of length 1 together.
    assert torch.equal(y, torch.full((1, 16), 0.25 if value else 0.0, dtype=dtype))
    assert x.grad is not None
    assert x.grad.isfinite().all()
