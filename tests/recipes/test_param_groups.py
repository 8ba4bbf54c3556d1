"""Each trainable parameter is in one group, with the rate and the decay that it should have."""

from typing import Any

import pytest
import timm
import torch
from torch import nn
from torchvision.models import get_model

from pttool.recipes import freeze, param_groups


def _sizes(groups: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(len(group["params"]), sum(p.numel() for p in group["params"])) for group in groups]


def _old_recipe(model: nn.Module) -> list[dict[str, Any]]:
    """Weight decay for all but what has `bias` in its name."""
    bias = (p for name, p in model.named_parameters() if name[-4:] == "bias")
    others = (p for name, p in model.named_parameters() if name[-4:] != "bias")
    return [{"params": others, "weight_decay": 1e-4}, {"parameters": bias, "weight_decay": 0}]


def test_resnet18_and_the_faults_of_the_old_recipe() -> None:
    model = get_model("resnet18")
    decayed, spared = param_groups(model, {}, weight_decay=1e-4)
    assert _sizes([decayed, spared]) == [(21, 11_678_912), (41, 10_600)]
    assert (decayed["weight_decay"], spared["weight_decay"]) == (1e-4, 0.0)
    old = _old_recipe(model)
    with pytest.raises(KeyError, match="params"):
        torch.optim.SGD(old, lr=0.1)
    assert {id(p) for p in model.bn1.parameters()} <= {id(p) for p in spared["params"]}
    assert id(model.bn1.weight) in {id(p) for p in _old_recipe(model)[0]["params"]}


def test_vit_decays_its_class_token_and_position_embedding() -> None:
    model = get_model("vit_b_16")
    decayed, spared = param_groups(model, {}, weight_decay=0.1)
    assert [len(group["params"]) for group in (decayed, spared)] == [52, 100]
    ids = {id(p) for p in decayed["params"]}
    assert {id(model.class_token), id(model.encoder.pos_embedding)} <= ids


def test_norms_of_other_libraries_are_norms() -> None:
    """Their classes aren't torch's, and a norm without a bias has no name to be known by."""
    model = timm.create_model("convnextv2_atto")
    spared = {id(p) for p in param_groups(model, {}, weight_decay=0.1)[1]["params"]}
    grn = [m for m in model.modules() if type(m).__name__ in ("LayerNorm", "LayerNorm2d")]
    assert grn
    assert {id(p) for m in grn for p in m.parameters()} <= spared


class RmsNorm(nn.Module):
    """A norm as people write it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))


@pytest.mark.parametrize(
    ("no_decay", "decayed"),
    [
        ("norm+bias", ["0.weight"]),
        ("norm", ["0.weight", "0.bias"]),
        ("bias", ["0.weight", "1.weight"]),
        ("none", ["0.weight", "0.bias", "1.weight"]),
    ],
)
def test_what_is_spared_is_a_choice(no_decay: str, decayed: list[str]) -> None:
    model = nn.Sequential(nn.Linear(2, 2), RmsNorm())
    groups = param_groups(model, {}, weight_decay=0.1, no_decay=no_decay)  # type: ignore[arg-type]
    ids = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    names = [name for name, p in model.named_parameters() if id(p) in ids]
    assert names == decayed


def test_rates_by_layer_where_a_substring_would_hit_too_much() -> None:
    model = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("convolution1", "convolution10")})
    groups = param_groups(model, {"convolution1": 0.01, "*.bias": 0.5}, 0.0)
    by_rate = {group.get("lr"): [id(p) for p in group["params"]] for group in groups}
    first, tenth = model["convolution1"], model["convolution10"]
    substring = [name for name, _ in model.named_parameters() if "convolution1" in name]
    assert len(substring) == 4, "the old recipe's"
    assert by_rate[0.5] == [id(tenth.bias)]
    assert {rate for group in groups for rate in [group.get("lr")]} == {0.01, 0.5, None}
    in_first = {id(p) for group in groups if group.get("lr") == 0.01 for p in group["params"]}
    assert in_first == {id(first.weight), id(first.bias)}
    optimizer = torch.optim.SGD(groups, lr=0.1)
    assert {group["lr"] for group in optimizer.param_groups} == {0.01, 0.5, 0.1}


def test_frozen_ones_are_left_out_and_tied_ones_come_once() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3), "c": nn.Linear(3, 3)})
    model["b"].weight = model["a"].weight
    freeze(model, "c")
    groups = param_groups(model, {"b.weight": 0.3}, 0.0)
    grouped = [id(p) for group in groups for p in group["params"]]
    assert sorted(grouped) == sorted({id(p) for p in model.parameters() if p.requires_grad})
    assert [id(p) for g in groups if g.get("lr") == 0.3 for p in g["params"]] == [
        id(model["a"].weight)
    ]


@pytest.mark.parametrize(
    ("globs", "said"),
    [
        (["layer9"], "'layer9' matches no parameter or module; nearest: "),
        (["layer", "fc"], "'layer' matches no parameter or module; nearest: "),
        (["*", "fc"], "'fc': all it matches are frozen, or matched by a glob before it"),
        (["conv1"], "'conv1': all it matches are frozen"),
    ],
)
def test_a_glob_that_gives_no_parameter_its_rate_raises(globs: list[str], said: str) -> None:
    model = get_model("resnet18")
    freeze(model, "conv1")
    with pytest.raises(ValueError, match=said):
        param_groups(model, dict.fromkeys(globs, 0.1), 0.0)


def test_the_decay_must_be_said_and_what_is_spared_be_known() -> None:
    """A decay of 0 in a group would switch the optimizer's own off."""
    with pytest.raises(TypeError, match="weight_decay"):
        param_groups(nn.Linear(2, 2), {})  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"is 'norms': one of norm\+bias, norm, bias, none"):
        param_groups(nn.Linear(2, 2), {}, 0.1, "norms")  # type: ignore[arg-type]
