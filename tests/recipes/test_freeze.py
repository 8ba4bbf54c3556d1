"""What is frozen doesn't change by a bit, whatever training does."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import spectral_norm as hooked_spectral_norm
from torch.nn.utils.parametrizations import spectral_norm
from torchvision.models import resnet18

from pttool.recipes import freeze


def _trained_a_step(model: nn.Module, x: Tensor) -> set[str]:
    """Train a step of all that is left to train, and return the names of tensors that changed."""
    before = copy.deepcopy(model.state_dict())
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    model(x).square().sum().backward()
    optimizer.step()
    after = model.state_dict()
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_a_step_changes_nothing_frozen_and_by_the_old_recipe_the_statistics() -> None:
    x = torch.randn(2, 3, 32, 32)
    model, old = resnet18(num_classes=2), resnet18(num_classes=2)
    for name, parameter in old.named_parameters():
        parameter.requires_grad_(name.startswith("fc"))
    moved = _trained_a_step(old, x)
    assert "layer1.0.bn1.running_mean" in moved
    frozen = freeze(model, "conv1", "bn1", "layer[1-4]")
    assert _trained_a_step(model, x) == {"fc.weight", "fc.bias"}
    # resnet18 has 11,176,512 parameters without its head, in 60 tensors, and 20 batch norms.
    assert (frozen.frozen_tensors, frozen.frozen_parameters) == (60, 11_176_512)
    assert (frozen.trainable_tensors, frozen.trainable_parameters) == (2, 1026)
    assert frozen.kept_in_eval == 20


def test_only_what_matches_is_frozen() -> None:
    model = nn.ModuleDict({name: nn.Conv2d(3, 3, 1) for name in ("conv1", "conv10")})
    freeze(model, "conv1")
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert trained == ["conv10.weight", "conv10.bias"]


def test_statistics_move_where_the_user_wants_them_to() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3))
    assert freeze(model, "0", bn_eval=False).kept_in_eval == 0
    model.train()(torch.randn(2, 3, 4, 4))
    assert int(model.state_dict()["0.num_batches_tracked"]) == 1


def test_a_layer_that_is_half_frozen_goes_on_learning() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3))
    freeze(model, "0.weight")
    assert _trained_a_step(model, torch.randn(2, 3, 4, 4)) >= {"0.bias", "0.running_mean"}


def test_buffers_without_parameters_and_of_parametrizations_stay() -> None:
    body = nn.Sequential(spectral_norm(nn.Conv2d(3, 3, 1)), nn.BatchNorm2d(3, affine=False))
    model = nn.Sequential(body, nn.Dropout(), nn.Conv2d(3, 2, 1))
    freeze(model, "0")
    assert _trained_a_step(model, torch.randn(2, 3, 4, 4)) == {"2.weight", "2.bias"}
    assert model[1].training, "dropout still drops"


def test_momentum_and_stale_gradients_do_not_move_it() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    freeze(model, "weight")
    weight = model.weight.detach().clone()
    optimizer.step()
    assert torch.equal(model.weight, weight)


def test_a_model_can_be_copied_and_frozen_twice() -> None:
    model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.Conv2d(3, 1, 1))
    freeze(model, "[01]")
    again = copy.deepcopy(model)
    assert freeze(again, "1").kept_in_eval == 1
    assert len(again[1]._forward_pre_hooks) == 1, "hooks don't pile up"
    assert _trained_a_step(again, torch.randn(2, 3, 4, 4)) == {"2.weight", "2.bias"}


@pytest.mark.parametrize("patterns", [("layer9",), ("layer1", "conv")])
def test_a_pattern_without_a_match_names_the_nearest(patterns: tuple[str, ...]) -> None:
    with pytest.raises(
        ValueError, match=f"'{patterns[-1]}' matches no parameter or module; nearest: "
    ):
        freeze(resnet18(), *patterns)


def test_in_two_steps_as_in_one() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1))
    assert freeze(model, "0.weight").kept_in_eval == 0
    assert freeze(model, "0.bias").kept_in_eval == 1
    assert _trained_a_step(model, torch.randn(2, 3, 4, 4)) == {"1.weight", "1.bias"}


@pytest.mark.filterwarnings("ignore:.*spectral_norm.* is deprecated:FutureWarning")
def test_a_hook_that_moves_buffers_comes_after_and_a_layer_of_buffers_has_a_name() -> None:
    body = hooked_spectral_norm(nn.Conv2d(3, 3, 1))
    model = nn.Sequential(body, nn.BatchNorm2d(3, affine=False), nn.Conv2d(3, 2, 1))
    freeze(model, "0", "1")
    changed = _trained_a_step(model, torch.randn(2, 3, 4, 4))
    assert changed == {"2.weight", "2.bias"}
