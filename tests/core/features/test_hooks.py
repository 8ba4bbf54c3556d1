"""Tensors taken from layers are those of the recipes that people write, bit for bit."""

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from pttool.core.features.hooks import Capture
from pttool.core.features.naming import choose
from pttool.core.features.types import Pool, Wanted
from pttool.errors import InputError, UsageError
from tests.core.features.reference import captured, cloned, found_in, probed


@pytest.fixture(scope="module")
def vgg16() -> models.VGG:
    torch.manual_seed(0)
    model: models.VGG = models.vgg16().eval()
    return model


@pytest.fixture(scope="module")
def resnet18() -> models.ResNet:
    torch.manual_seed(0)
    model: models.ResNet = models.resnet18().eval()
    return model


def _pictures(size: int = 224, count: int = 2) -> Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(1))


def test_recipes_of_vgg16_bit_for_bit(vgg16: models.VGG) -> None:
    x = _pictures()
    taken = captured(vgg16, x, "relu5_3,pool5,fc7", "net:relu7")
    with torch.inference_mode():
        relu5_3 = vgg16.features[:-1](x)
        pool5 = vgg16.features(x)
        flat = torch.flatten(vgg16.avgpool(pool5), 1)
        fc7 = vgg16.classifier[:-3](flat)
        relu7 = vgg16.classifier[:-2](flat)
    assert list(taken) == ["relu5_3", "pool5", "fc7", "relu7"]
    assert torch.equal(taken["relu5_3"], relu5_3)
    assert torch.equal(taken["pool5"], pool5)
    assert taken["relu5_3"].shape == (2, 512, 14, 14)
    assert taken["pool5"].shape == (2, 512, 7, 7)
    # The recipe's own slice ends in Dropout, Linear: its result is before the last ReLU.
    assert torch.equal(taken["fc7"], fc7)
    assert taken["fc7"].shape == (2, 4096)
    assert taken["fc7"].min() < 0
    assert torch.equal(taken["relu7"], relu7)


def test_recipes_of_resnet_bit_for_bit(resnet18: models.ResNet) -> None:
    x = _pictures()
    taken = captured(resnet18, x, "gap", "layer?", "net:pool5")
    with torch.inference_mode():
        gap = nn.Sequential(*list(resnet18.children())[:-1])(x)
        stem = nn.Sequential(*list(resnet18.children())[:4])(x)
        stages = [stem]
        for stage in (resnet18.layer1, resnet18.layer2, resnet18.layer3, resnet18.layer4):
            stages.append(stage(stages[-1].clone()))
    assert list(taken) == ["gap", "layer1", "layer2", "layer3", "layer4", "pool5"]
    assert taken["gap"].shape == (2, 512, 1, 1)
    assert torch.equal(taken["gap"], gap)
    assert torch.equal(taken["pool5"], gap)
    for number, stage in enumerate(stages[1:], 1):
        assert torch.equal(taken[f"layer{number}"], stage)


def test_a_convolution_before_an_inplace_relu_keeps_its_negative_values() -> None:
    torch.manual_seed(0)
    alexnet = models.alexnet().eval()
    x = _pictures()
    taken = captured(alexnet, x, "features.0")["features.0"]
    with torch.inference_mode():
        assert torch.equal(taken, alexnet.features[:1](x))
    assert taken.min() < 0


def _tiny_vit() -> nn.Module:
    vit: nn.Module = models.VisionTransformer(32, 16, 2, 2, 16, 32, num_classes=5)
    return vit


def _tiny_swin() -> nn.Module:
    swin: nn.Module = models.SwinTransformer([4, 4], 8, [2, 2], [2, 2], [4, 4], num_classes=5)
    return swin


SMALL = {
    "resnet18": (models.resnet18, 64),
    "mobilenet_v3_small": (models.mobilenet_v3_small, 64),
    "squeezenet1_1": (models.squeezenet1_1, 64),
    "shufflenet_v2_x0_5": (models.shufflenet_v2_x0_5, 64),
    "mnasnet0_5": (models.mnasnet0_5, 64),
    "vit": (_tiny_vit, 32),
    "swin": (_tiny_swin, 64),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_module_equals_a_cloned_reference_or_is_refused_by_name(name: str) -> None:
    make, size = SMALL[name]
    torch.manual_seed(0)
    _check_every_module(make().eval(), _pictures(size))


# 2.6 GB of outputs for two pictures would not fit beside its 0.6 GB of weights on a small machine.
HUGE = ("vit_h_14", "regnet_y_128gf")


@pytest.mark.verify
@pytest.mark.filterwarnings("ignore:The default weight initialization of:FutureWarning")
@pytest.mark.parametrize("name", models.list_models(module=models))
def test_every_module_of_every_classification_model(name: str) -> None:
    torch.manual_seed(0)
    model = models.get_model(name, weights=None).eval()
    size = getattr(model, "image_size", 299 if name == "inception_v3" else 224)
    _check_every_module(model, _pictures(size, 1 if name in HUGE else 2))


def _check_every_module(model: nn.Module, pictures: Tensor) -> None:
    layers = probed(model, pictures).layers
    everything = choose(layers, ["*"], model="net")
    reference = cloned(model, pictures)
    capture = Capture(model, everything.wanted)
    taken = capture(pictures)
    capture.close()
    for wanted in everything.wanted:
        assert torch.equal(taken[wanted.layer], found_in(reference, wanted)), wanted
    modules = {wanted.module for wanted in everything.wanted}
    for name, _ in model.named_modules():
        if name and name not in modules:
            with pytest.raises(UsageError, match=f"-l {name}: "):
                choose(layers, [name], model="net")


def test_it_stops_after_the_last_wanted_layer(resnet18: models.ResNet) -> None:
    reached = []
    handle = resnet18.layer2.register_forward_pre_hook(lambda *_: reached.append("layer2"))
    capture = Capture(resnet18, [Wanted("conv1", "conv1"), Wanted("layer1", "layer1")])
    capture(_pictures(64))
    capture.close()
    handle.remove()
    assert reached == []


class _Branching(nn.Module):
    """Takes another way for dark pictures, and catches whatever goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.bright = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 8, 3)

    def forward(self, x: Tensor) -> dict[str, Any]:
        try:
            y = self.first(x)
            return {"out": [self.bright(y) if x.mean() > 0 else y], "n": 1}
        except Exception:
            return {"out": [x], "n": 0}


class _Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = _Branching()

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.inner(x)["out"][0]
        return output


def test_control_flow_and_nested_outputs() -> None:
    torch.manual_seed(0)
    model, x = _Outer().eval(), torch.ones(2, 3, 8, 8)
    with torch.inference_mode():
        expected = model(x)
    wanted = [Wanted("deep", "inner", 0, ("out", "0")), Wanted("b", "inner.bright")]
    capture = Capture(model, wanted, name="net")
    taken = capture(x)
    assert torch.equal(taken["deep"], expected)
    assert torch.equal(taken["b"], expected)
    with pytest.raises(InputError, match="net: b was not reached for these pictures"):
        capture(-x)
    capture.close()
    assert torch.equal(model(-x), model.inner.first(-x))  # no hook is left behind


def test_detectors_take_a_list() -> None:
    torch.manual_seed(0)
    model = models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=3
    ).eval()
    x = torch.rand(2, 3, 320, 320, generator=torch.Generator().manual_seed(1))
    taken = captured(model, x, "backbone[0]", "head.classification_head")
    with torch.inference_mode():
        images, _ = model.transform(list(x))
        features = model.backbone(images.tensors)
    assert torch.equal(taken["backbone[0]"], features["0"])
    assert len(taken["head.classification_head"]) == 2


@pytest.mark.parametrize(
    ("layer", "shape", "dims"),
    [("conv_proj", (2, 16, 2, 2), (2, 3)), ("encoder", (2, 5, 16), (1,)), ("heads", (2, 5), ())],
)
def test_gap_is_the_mean_over_space_or_tokens(
    layer: str, shape: tuple[int, ...], dims: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    model, x = _tiny_vit().eval(), _pictures(32)
    plain = captured(model, x, layer)[layer]
    assert plain.shape == shape
    expected = plain.mean(dims) if dims else plain
    assert torch.equal(captured(model, x, layer, pool=Pool.GAP)[layer], expected)
    flat = captured(model, x, layer, pool=Pool.FLATTEN)[layer]
    assert torch.equal(flat, plain.reshape(2, -1))


def test_gap_inside_swin_where_channels_are_last() -> None:
    torch.manual_seed(0)
    model, x = _tiny_swin().eval(), _pictures(64)
    plain = captured(model, x, "features.1")["features.1"]
    assert plain.shape == (2, 16, 16, 8)
    pooled = captured(model, x, "features.1", pool=Pool.GAP)["features.1"]
    assert torch.equal(pooled, plain.mean((1, 2)))


def test_cls_is_the_first_token_and_refused_without_tokens() -> None:
    torch.manual_seed(0)
    model, x = _tiny_vit().eval(), _pictures(32)
    plain = captured(model, x, "encoder")["encoder"]
    assert torch.equal(captured(model, x, "encoder", pool=Pool.CLS)["encoder"], plain[:, 0])
    with pytest.raises(UsageError, match="--pool cls: conv_proj gives"):
        captured(model, x, "conv_proj", pool=Pool.CLS)


def test_opted_in_ways_to_run_stay_close_and_are_contiguous(resnet18: models.ResNet) -> None:
    x = _pictures(64)
    plain = captured(resnet18, x, "layer1")["layer1"]
    amp = captured(resnet18, x, "layer1.0.conv1", amp=True)["layer1.0.conv1"]
    assert amp.dtype == torch.bfloat16
    torch.manual_seed(0)
    other = models.resnet18().eval()
    taken = captured(other, x, "layer1", channels_last=True)["layer1"]
    assert taken.is_contiguous()
    assert torch.allclose(taken, plain, atol=1e-4)
    half = captured(other.to(torch.bfloat16), x, "layer1")["layer1"]
    assert half.dtype == torch.bfloat16


def test_a_failing_forward_is_the_inputs_fault() -> None:
    capture = Capture(nn.Sequential(nn.Linear(5, 5)), [Wanted("0", "0")], name="net.py:Net")
    with pytest.raises(InputError, match=r"net.py:Net: RuntimeError: mat1 and mat2"):
        capture(torch.zeros(1, 3, 4, 4))
    capture.close()


def test_outputs_share_no_memory_with_the_model(resnet18: models.ResNet) -> None:
    x = _pictures(64)
    capture = Capture(resnet18, [Wanted("layer1", "layer1")])
    first = capture(x)["layer1"]
    kept = first.clone()
    second = weakref.ref(capture(-x)["layer1"])
    assert torch.equal(first, kept)
    gc.collect()
    assert second() is None  # no batch is held on to
    capture.close()


@pytest.mark.filterwarnings("ignore:`torch.jit:")
def test_torchscript_has_no_layers_to_take() -> None:
    script = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 1)))
    with pytest.raises(InputError, match="runs as one, its layers can't be seen"):
        probed(script, _pictures(8))
