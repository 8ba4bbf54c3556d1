"""What fits is loaded, what doesn't is told, and nothing is hidden."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torchvision.models import resnet18
from torchvision.models.vision_transformer import MLPBlock

from pttool.core.ckpt.editing.renaming import Renaming
from pttool.core.ckpt.strip_dataparallel import strip_dataparallel
from pttool.errors import InputError
from pttool.recipes import Matching, load_matching


def _net(classes: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, classes))


def test_another_head_is_told_where_the_old_recipe_raises() -> None:
    source, model = _net(classes=5), _net(classes=3)
    head = copy.deepcopy(model[2].state_dict())
    state_dict = source.state_dict()
    del state_dict["1.running_mean"]
    state_dict["extra.weight"] = torch.zeros(1)
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_state_dict(state_dict, strict=False)
    assert load_matching(model, state_dict) == Matching(
        loaded=(
            "0.weight", "0.bias", "1.weight", "1.bias", "1.running_var", "1.num_batches_tracked",
        ),
        missing=("1.running_mean",),
        unexpected=("extra.weight",),
        mismatched=("2.weight", "2.bias"),
    )  # fmt: skip
    assert torch.equal(model.state_dict()["0.weight"], source.state_dict()["0.weight"])
    assert all(torch.equal(head[name], tensor) for name, tensor in model[2].state_dict().items())


@pytest.mark.parametrize(
    ("wrap_source", "wrap_model"),
    [("module.", ""), ("", "module."), ("module._orig_mod.", ""), ("_orig_mod.", "module.")],
)
def test_names_of_wrappers_go_on_both_sides(wrap_source: str, wrap_model: str) -> None:
    source, model = _net(), _net()
    inside: nn.Module = model
    for name in reversed(wrap_model.split(".")[:-1]):
        inside = nn.ModuleDict({name: inside})
    given_names = {wrap_source + name: tensor for name, tensor in source.state_dict().items()}
    result = load_matching(inside, given_names)
    assert not result.missing + result.unexpected + result.mismatched
    assert len(result.loaded) == len(source.state_dict())
    assert all(
        torch.equal(a, b) for a, b in zip(source.parameters(), model.parameters(), strict=True)
    )


def test_a_child_that_is_called_module_keeps_its_name() -> None:
    source, model = (nn.ModuleDict({"module": nn.Linear(2, 2)}) for _ in range(2))
    wrapped = {f"module.{name}": tensor for name, tensor in source.state_dict().items()}
    for state_dict in (source.state_dict(), wrapped):
        assert load_matching(model, state_dict).loaded == ("module.weight", "module.bias")


def test_a_part_of_a_state_dict_keeps_the_names_that_the_model_has() -> None:
    model = nn.ModuleDict({"module": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    result = load_matching(model, {"module.weight": torch.zeros(2, 2)})
    assert (result.loaded, result.unexpected) == (("module.weight",), ())


def test_the_model_loads_as_before_afterwards() -> None:
    model = nn.Linear(2, 2)
    load_matching(model, {"weight": torch.zeros(3, 3)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_state_dict({"weight": torch.zeros(3, 3)}, strict=False)


NAMES = st.lists(
    st.sampled_from(["module", "_orig_mod", "_fsdp_wrapped_module", "a", "b", "weight"]),
    min_size=1,
    max_size=4,
).map(".".join)


@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_the_names_are_those_of_strip_dataparallel(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("names")
    torch.save({name: torch.zeros(1) for name in names}, folder / "a.pt")
    try:
        strip_dataparallel(folder / "a.pt", folder / "b.pt", Renaming())
    except InputError:  # two names would become one
        return
    result = load_matching(nn.Identity(), dict.fromkeys(names, torch.zeros(1)))
    assert result.unexpected == tuple(torch.load(folder / "b.pt"))


def test_two_names_that_become_one_are_refused() -> None:
    state_dict = {"_orig_mod.weight": torch.zeros(2, 2), "weight": torch.zeros(2, 2)}
    with pytest.raises(ValueError, match=r"^weight: another name .* becomes weight too$"):
        load_matching(nn.Linear(2, 2), state_dict)


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.just(np.zeros(3)),
    st.lists(st.integers(0, 3), max_size=3).map(lambda shape: torch.ones(shape)),
)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from([*_net().state_dict(), "other"]), VALUES))
def test_no_value_raises_and_each_name_is_told_once(state_dict: dict[str, Tensor]) -> None:
    model = _net()
    result = load_matching(model, state_dict)
    told = result.loaded + result.unexpected + result.mismatched
    assert sorted(told) == sorted(state_dict)
    wanted = result.loaded + result.mismatched + result.missing
    assert sorted(wanted) == sorted(model.state_dict())


def test_a_lazy_layer_takes_any_shape() -> None:
    model = nn.LazyLinear(2)
    assert load_matching(model, nn.Linear(3, 2).state_dict()).loaded == ("weight", "bias")
    assert model.weight.shape == (2, 3)


def test_a_published_model_is_loaded_without_its_head() -> None:
    source, model = resnet18(), resnet18(num_classes=10)
    result = load_matching(model, source.state_dict())
    assert (len(result.loaded), result.missing) == (120, ())
    assert result.mismatched == ("fc.weight", "fc.bias")


def test_names_of_an_old_format_are_converted_first() -> None:
    """torchvision's published ViTs call their layers linear_1 and linear_2."""
    model, other = MLPBlock(4, 8, 0.0), MLPBlock(4, 6, 0.0)
    source = MLPBlock(4, 8, 0.0).state_dict()
    old = {f"linear_{int(name[0]) // 3 + 1}{name[1:]}": value for name, value in source.items()}
    assert load_matching(model, old).loaded == tuple(source)
    assert torch.equal(model[3].weight, source["3.weight"])
    assert load_matching(other, old).mismatched == ("0.weight", "0.bias", "3.weight")


def test_a_scalar_of_torch_0_3_is_taken_as_torch_takes_it() -> None:
    model = nn.BatchNorm2d(2)
    result = load_matching(model, {"num_batches_tracked": torch.tensor([7])})
    assert (result.loaded, result.mismatched) == (("num_batches_tracked",), ())
    assert model.state_dict()["num_batches_tracked"] == 7


def test_what_nothing_can_be_loaded_into_or_from_is_refused() -> None:
    with pytest.raises(ValueError, match="weight is on the meta device"):
        load_matching(nn.Linear(2, 2, device="meta"), nn.Linear(2, 2).state_dict())
    with pytest.raises(ValueError, match="0 is no name of a tensor"):
        load_matching(nn.Linear(2, 2), {0: torch.zeros(1)})  # type: ignore[dict-item]
