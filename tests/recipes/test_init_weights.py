"""Every layer that has a rule is initialised by it."""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import weight_norm

from pttool.recipes import init_weights


def _model() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(4, 6, 3),
        nn.Conv2d(4, 6, 3, bias=False),
        nn.Conv3d(4, 6, 3),
        nn.ConvTranspose1d(4, 6, 3),
        nn.ConvTranspose2d(4, 6, 3),
        nn.ConvTranspose3d(4, 6, 3),
        nn.Linear(4, 6),
        nn.BatchNorm1d(4, affine=False),
        nn.BatchNorm2d(4),
        nn.InstanceNorm2d(4, affine=True),
        nn.GroupNorm(2, 4),
        nn.GroupNorm(2, 4, affine=False),
        nn.LayerNorm(4),
        nn.LayerNorm(4, bias=False),
        nn.RMSNorm(4),
    )


def _old_recipe(model: nn.Module) -> None:
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.constant_(layer.bias, val=0.0)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.constant_(layer.weight, val=1.0)
            nn.init.constant_(layer.bias, val=0.0)
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, val=0.0)


def _marked(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    return model


def _untouched(model: nn.Module) -> list[str]:
    return [name for name, p in model.named_parameters() if bool((p == 7.0).all())]


def test_all_layers_are_initialised_and_the_old_recipe_skips_or_crashes() -> None:
    model = _marked(_model())
    init_weights(model)
    assert _untouched(model) == []
    skipped = _marked(_model())
    _old_recipe(skipped)
    assert {"0.weight", "2.weight", "4.weight", "10.weight"} <= set(_untouched(skipped))
    with pytest.raises(AttributeError):
        _old_recipe(nn.BatchNorm2d(4, affine=False))
    init_weights(nn.BatchNorm2d(4, affine=False))


def test_where_the_old_recipe_works_the_values_are_its_own() -> None:
    models = [nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 2)) for _ in "ab"]
    torch.manual_seed(3)
    _old_recipe(models[0])
    init_weights(models[1], generator=torch.Generator().manual_seed(3))
    for old, new in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(old, new)


@pytest.mark.parametrize("scheme", ["kaiming", "xavier"])
def test_the_same_generator_gives_the_same_tensors(scheme: str) -> None:
    models = [_model() for _ in range(2)]
    states = []
    for model in models:
        init_weights(model, scheme, torch.Generator().manual_seed(1))  # type: ignore[arg-type]
        states.append(model.state_dict())
    for first, second in pairwise(states):
        assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("layer", "scheme", "variance"),
    [
        (nn.Conv1d(64, 256, 5), "kaiming", 2 / (256 * 5)),
        (nn.Conv3d(16, 64, 3), "kaiming", 2 / (64 * 27)),
        (nn.ConvTranspose2d(64, 256, 3), "kaiming", 2 / (256 * 9)),
        (nn.ConvTranspose2d(64, 256, 3), "xavier", 2 / (320 * 9)),
        (nn.Linear(300, 500), "kaiming", 2 / 800),
        (nn.Linear(300, 500), "xavier", 2 / 800),
    ],
    ids=str,
)
def test_the_variance_is_that_of_the_papers(
    layer: nn.Conv1d | nn.Linear, scheme: str, variance: float
) -> None:
    init_weights(layer, scheme, torch.Generator().manual_seed(0))  # type: ignore[arg-type]
    assert float(layer.weight.detach().var()) == pytest.approx(variance, rel=0.03)
    assert layer.bias is not None
    assert not layer.bias.any()


def test_what_would_change_nothing_is_refused() -> None:
    pruned = prune.identity(nn.Conv2d(2, 2, 1), "bias")  # type: ignore[no-untyped-call]
    for own, layer in (("weight", weight_norm(nn.Linear(2, 2))), ("bias", pruned)):
        with pytest.raises(ValueError, match=f"0: its {own} is computed"):
            init_weights(nn.Sequential(layer))
    with pytest.raises(ValueError, match="0: is lazy"):
        init_weights(nn.Sequential(nn.LazyLinear(2)))
    with pytest.raises(ValueError, match="'kaiming' or 'xavier'"):
        init_weights(nn.Linear(2, 2), "he")  # type: ignore[arg-type]
