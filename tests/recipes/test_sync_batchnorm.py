"""torch's convert_sync_batchnorm and back gives the model that there was."""

import copy
from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torchvision.models import resnet18

from pttool.recipes import freeze, revert_sync_batchnorm

M = TypeVar("M", bound=nn.Module)


def _converted(model: nn.Module) -> nn.Module:
    """Return torch's SyncBN of a copy."""
    convert: Callable[[nn.Module], nn.Module] = nn.SyncBatchNorm.convert_sync_batchnorm
    return convert(copy.deepcopy(model))


def _used(model: M, x: Tensor) -> M:
    """Give the running statistics values of their own."""
    model.train()
    with torch.no_grad():
        model(x)
    return model.eval()


def _norms(model: nn.Module) -> list[_BatchNorm]:
    return [module for module in model.modules() if isinstance(module, _BatchNorm)]


def _differences(model: nn.Module, other: nn.Module) -> set[str]:
    """Return what differs between the batch norms of two models."""
    found = set()
    for norm, back in zip(_norms(model), _norms(other), strict=True):
        tensors = back.state_dict()
        for name, tensor in norm.state_dict().items():
            if name not in tensors or not torch.equal(tensor, tensors[name]):
                found.add(name)
        for name in ("training", "eps", "momentum", "affine", "track_running_stats"):
            if getattr(norm, name) != getattr(back, name):
                found.add(name)
        flags = [[p.requires_grad for p in one.parameters()] for one in (norm, back)]
        if flags[0] != flags[1]:
            found.add("requires_grad")
    return found


def _old_recipe(module: nn.Module) -> nn.Module:
    """The copy that goes around, the other way round."""
    if isinstance(module, nn.SyncBatchNorm):
        plain = nn.BatchNorm2d(module.num_features, module.eps, module.momentum, module.affine)
        plain.running_mean, plain.running_var = module.running_mean, module.running_var
        if module.affine:
            plain.weight = nn.Parameter(module.weight.clone().detach())
            plain.bias = nn.Parameter(module.bias.clone().detach())
        return plain
    for name, child in module.named_children():
        setattr(module, name, _old_recipe(child))
    return module


def test_resnet18_comes_back_bit_for_bit_and_by_the_old_recipe_does_not() -> None:
    x = torch.randn(2, 3, 32, 32)
    model = _used(resnet18(), x)
    model.bn1.weight.requires_grad_(False)
    model.layer1.train()
    sync = _converted(model)
    assert len([m for m in sync.modules() if isinstance(m, nn.SyncBatchNorm)]) == 20
    back = revert_sync_batchnorm(copy.deepcopy(sync))
    assert not any(isinstance(module, nn.SyncBatchNorm) for module in back.modules())
    assert all(isinstance(norm, nn.BatchNorm2d) for norm in _norms(back))
    assert _differences(model, back) == set()
    assert torch.equal(model.eval()(x), back.eval()(x))
    lost = _differences(model, _old_recipe(copy.deepcopy(sync)))
    assert lost == {"training", "num_batches_tracked", "requires_grad"}


@pytest.mark.parametrize(
    ("norm", "shape"),
    [
        (nn.BatchNorm1d(4), (3, 4)),
        (nn.BatchNorm1d(4, affine=False), (3, 4, 5)),
        (nn.BatchNorm2d(4, momentum=None), (3, 4, 5, 5)),
        (nn.BatchNorm3d(4, eps=0.1).double(), (3, 4, 2, 2, 2)),
        (nn.BatchNorm3d(4, track_running_stats=False), (3, 4, 2, 2, 2)),
    ],
    ids=str,
)
def test_inputs_of_any_dimension_are_taken(norm: _BatchNorm, shape: tuple[int, ...]) -> None:
    dtype = torch.float64 if norm.weight is not None and norm.eps == 0.1 else torch.float32
    x = torch.randn(shape, dtype=dtype)
    model = _used(nn.Sequential(norm), x)
    back = revert_sync_batchnorm(_converted(model))
    assert _differences(model, back) == set()
    assert torch.equal(model(x), back(x))
    assert torch.equal(model.train()(x), back.train()(x))


def test_optimizers_keep_their_parameters_and_a_shared_layer_stays_shared() -> None:
    norm = nn.BatchNorm2d(2)
    sync = _converted(nn.Sequential(norm))
    (layer,) = sync.children()
    shared = nn.Sequential(layer, nn.ReLU(), layer)
    before = list(shared.parameters())
    back = revert_sync_batchnorm(shared)
    assert all(a is b for a, b in zip(before, back.parameters(), strict=True))
    assert back[0] is back[2]  # type: ignore[index]


def test_the_class_can_be_said_and_a_lone_layer_is_replaced() -> None:
    back = revert_sync_batchnorm(nn.SyncBatchNorm(2), nn.BatchNorm1d)
    assert type(back) is nn.BatchNorm1d
    with pytest.raises(ValueError, match="at least 2"):
        revert_sync_batchnorm(nn.SyncBatchNorm(2))(torch.zeros(2))


def test_a_frozen_layer_stays_frozen() -> None:
    """freeze keeps a layer in eval mode by a hook."""
    model = nn.Sequential(nn.SyncBatchNorm(2))
    freeze(model, "0")
    back = revert_sync_batchnorm(model)
    back.train()(torch.randn(4, 2, 3))
    assert int(back.state_dict()["0.num_batches_tracked"]) == 0
