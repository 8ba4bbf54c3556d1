"""What -l chooses, and how each wrong name is refused."""

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torchvision import models

from pttool.core.features.naming import choose
from pttool.core.features.probe import probe
from pttool.core.features.types import Kind, Layer, Output, Part, Wanted
from pttool.core.model.resolve import resolve
from pttool.core.model.spec import PublishedModel
from pttool.errors import UsageError
from tests.core.features.reference import chosen

Layers = tuple[Layer, ...]


def _layers_of(name: str) -> Layers:
    return probe(resolve(PublishedModel(name), {}, name=name), ()).layers


@pytest.fixture(scope="module")
def resnet18() -> Layers:
    return _layers_of("resnet18")


@pytest.fixture(scope="module")
def vit() -> Layers:
    return _layers_of("vit_b_16")


@pytest.fixture(scope="module")
def detector() -> Layers:
    return _layers_of("fasterrcnn_resnet50_fpn")


def _chosen(layers: Layers, *texts: str) -> list[str]:
    return [wanted.layer for wanted in choose(layers, texts, model="resnet18").wanted]


def _refused(layers: Layers, text: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        choose(layers, [text], model="resnet18")
    return caught.value.message, caught.value.hint or ""


# features[:-1] is the last ReLU of block 5, features the pool behind it; in VGGs with batch
# normalisation too. Source: torchvision's own configurations A, B, D and E.
@pytest.mark.parametrize(
    ("name", "last"), [("vgg11", 20), ("vgg13", 24), ("vgg16", 30), ("vgg19", 36), ("vgg16_bn", 43)]
)
def test_aliases_of_vgg(name: str, last: int) -> None:
    layers = _layers_of(name)
    deepest = {"vgg11": 2, "vgg13": 2, "vgg19": 4}.get(name, 3)
    texts = [f"relu5_{deepest}", "pool5", "relu1_1", "fc7", "relu7", f"{name}:fc6"]
    wanted = choose(layers, texts, model=name).wanted
    assert [(one.layer, one.module) for one in wanted] == [
        (f"relu5_{deepest}", f"features.{last - 1}"),
        ("pool5", f"features.{last}"),
        ("relu1_1", "features.2" if name == "vgg16_bn" else "features.1"),
        ("fc7", "classifier.3"),
        ("relu7", "classifier.4"),
        ("fc6", "classifier.0"),
    ]


@pytest.mark.parametrize("name", ["resnet50", "resnext50_32x4d", "wide_resnet50_2"])
def test_aliases_of_resnets(name: str) -> None:
    wanted = choose(_layers_of(name), ["gap,pool5,c5", f"{name}:c2"], model=name).wanted
    assert [one.module for one in wanted] == ["avgpool", "avgpool", "layer4", "layer1"]


def test_lists_repetitions_and_globs(resnet18: Layers) -> None:
    assert _chosen(resnet18, "layer1, fc", "avgpool", "layer1") == ["layer1", "fc", "avgpool"]
    assert _chosen(resnet18, "layer?") == ["layer1", "layer2", "layer3", "layer4"]
    assert _chosen(resnet18, "layer[12]") == ["layer1", "layer2"]
    assert _chosen(resnet18, "layer[1,3].?") == ["layer1.0", "layer1.1", "layer3.0", "layer3.1"]


def test_a_glob_takes_every_call_and_every_tensor(resnet18: Layers, detector: Layers) -> None:
    assert _chosen(resnet18, "layer1.*.relu") == [
        "layer1.0.relu:0", "layer1.0.relu:1", "layer1.1.relu:0", "layer1.1.relu:1",
    ]  # fmt: skip
    assert _chosen(resnet18, "layer1.*.relu:1") == ["layer1.0.relu:1", "layer1.1.relu:1"]
    names = ["backbone[0]", "backbone[1]", "backbone[2]", "backbone[3]", "backbone[pool]"]
    assert _chosen(detector, "backbone*")[:5] == names


def test_calls_count_from_0_and_keys_lead_into_outputs(resnet18: Layers, vit: Layers) -> None:
    (call,) = choose(resnet18, ["layer1.0.relu:1"], model="resnet18").wanted
    assert call == Wanted("layer1.0.relu:1", "layer1.0.relu", 1, ())
    attention = "encoder.layers.encoder_layer_0.self_attention"
    (key,) = choose(vit, [f"{attention}[0]"], model="vit_b_16").wanted
    assert key == Wanted(f"{attention}[0]", attention, 0, ("0",))


def test_an_unknown_name_gets_the_three_nearest(resnet18: Layers) -> None:
    message, hint = _refused(resnet18, "layer5")
    assert message == "-l layer5: there is no such layer"
    assert hint.startswith("nearest: layer")
    assert hint.count(",") == 2
    assert "nearest: " in _refused(resnet18, "vgg16:relu5_3")[1]
    assert "nearest: " in _refused(resnet18, "encoder*")[1]


def test_a_module_called_twice_needs_a_call(resnet18: Layers) -> None:
    message, hint = _refused(resnet18, "layer1.0.relu")
    assert message == "-l layer1.0.relu: layer1.0.relu is called 2 times"
    assert hint == "name one call: layer1.0.relu:0, layer1.0.relu:1"
    message, hint = _refused(resnet18, "layer1.0.relu:2")
    assert "has no call 2" in message
    assert "layer1.0.relu:0 to layer1.0.relu:1" in hint


def test_a_module_never_called_names_what_is_around_it(vit: Layers) -> None:
    attention = "encoder.layers.encoder_layer_3.self_attention"
    message, hint = _refused(vit, f"{attention}.out_proj")
    assert f"{attention}.out_proj is never called" in message
    assert hint == f"around it is {attention}[0]"
    message, hint = _refused(_layers_of("swin_t"), "features.1.0.attn.qkv")
    assert "features.1.0.attn.qkv is never called" in message
    assert hint == "around it is features.1.0.attn"


def test_an_output_of_several_tensors_names_them(vit: Layers, detector: Layers) -> None:
    attention = "encoder.layers.encoder_layer_3.self_attention"
    message, hint = _refused(vit, attention)
    assert message == f"-l {attention}: {attention} gives a tuple"
    assert hint == f"name one tensor of it: {attention}[0]"
    message, hint = _refused(detector, "backbone[5]")
    assert message == "-l backbone[5]: backbone gives a dict"
    assert "backbone[0], backbone[1], backbone[2], backbone[3], backbone[pool]" in hint
    assert "one tensor, which has no keys" in _refused(detector, "backbone.body.conv1[0]")[0]


def test_an_output_without_a_row_for_each_picture(detector: Layers) -> None:
    message, _ = _refused(detector, "roi_heads.box_head")
    assert "gives no row for each picture: for one it is [1000, 1024]" in message
    everything = choose(detector, ["*"], model="net")
    assert "roi_heads.box_head" not in [one.layer for one in everything.wanted]
    assert any("give no row for each picture" in note for note in everything.notes)


def test_empty_names(resnet18: Layers) -> None:
    for text in ("", "layer1,", ",", "resnet18:"):
        assert "a name is empty" in _refused(resnet18, text)[0]


_ROW = Output(Kind.TENSOR, (Part((), (1, 2), "float32", 8),))


def test_names_that_contain_what_separates_others() -> None:
    layers = tuple(Layer(name, "Linear", (_ROW,)) for name in ("a", "a:1", "a,b", "a[0]", "b*"))
    for layer in layers:
        (wanted,) = choose(layers, [layer.name], model="net").wanted
        assert wanted == Wanted(layer.name, layer.name)


@given(st.text("ab01.:,[]*? é", max_size=12))
def test_whatever_is_typed_is_chosen_or_refused(text: str) -> None:
    layers = tuple(Layer(name, "Linear", (_ROW,) * calls) for name, calls in (("a", 1), ("b.0", 2)))
    with contextlib.suppress(UsageError):
        assert {one.module for one in choose(layers, [text], model="net").wanted} <= {"a", "b.0"}


def test_a_module_held_twice_goes_by_both_names() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU()
            self.stage = nn.Sequential(nn.Conv2d(3, 3, 1), self.relu)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.stage(x)
            return output

    (wanted,) = chosen(Shared(), torch.zeros(1, 3, 4, 4), "stage.1").wanted
    assert (wanted.layer, wanted.module) == ("stage.1", "relu")


def test_there_is_an_alias_for_every_layer_of_a_vgg() -> None:
    known = {layer.name: layer.aliases for layer in _layers_of("vgg19")}
    assert all(known[f"features.{index}"] for index in range(len(models.vgg.cfgs["E"]) + 16))
