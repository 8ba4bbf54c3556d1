"""A borrowed model comes back exactly as it was."""

import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.model.summary import summary


class Meddling(nn.Module):
    """Draws random numbers, counts its calls, replaces a buffer and updates statistics."""

    counter: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.lazy = nn.LazyLinear(5)
        self.register_buffer("counter", torch.zeros(()))
        self.calls = 0
        self.scale = torch.ones(4, 1, 1)
        self.seen: list[int] = []
        self.conv.weight.requires_grad_(False)
        self.bn.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen.append(len(x))
        with torch.no_grad():
            self.scale.add_(1)
            self.conv.weight.add_(1)
        self.counter = self.counter + random.random() + np.random.rand()
        hidden = self.bn(self.conv(x)) * self.scale + torch.randn(1)
        out: Tensor = self.lazy(hidden.flatten(1))
        return out


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_nothing_of_the_users_model_changes(device: str, training: bool) -> None:
    model = Meddling()
    weight, mean, counter = model.conv.weight, model.bn.running_mean, model.counter
    assert mean is not None
    before, weight_before = mean.clone(), weight.clone()
    modes = {name: module.training for name, module in model.named_modules()}
    hooks = {name: len(module._forward_pre_hooks) for name, module in model.named_modules()}
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    numpy_state = np.random.get_state(legacy=False)

    resolved = Resolved("Meddling", "here", model, device)
    report = summary(resolved, [InputSpec((3, 8, 8))], batch=2, training=training)

    assert report.failure is None
    assert report.summary["params"] == 3 * 4 * 9 + 4 + 8 + 4 * 36 * 5 + 5
    assert report.summary["frozen_params"] == 3 * 4 * 9
    assert model.conv.weight is weight
    assert torch.equal(weight, weight_before)
    assert not weight.requires_grad
    assert torch.equal(model.scale, torch.ones(4, 1, 1))
    assert model.seen == []
    assert model.bn.running_mean is mean
    assert torch.equal(mean, before)
    assert model.counter is counter
    assert counter.item() == 0
    assert model.calls == 0
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert {name: len(m._forward_pre_hooks) for name, m in model.named_modules()} == hooks
    assert type(model.lazy) is nn.LazyLinear
    assert is_lazy(model.lazy.weight)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert random.getstate() == python_state
    assert str(np.random.get_state(legacy=False)) == str(numpy_state)
