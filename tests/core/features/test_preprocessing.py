"""Pictures become the tensors that the weights were trained with, bit for bit."""

from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from torchvision import models, transforms

from pttool.core.features.loading import plan
from pttool.core.features.preprocessing import Preprocessing
from pttool.core.model.spec import parse_model
from pttool.errors import InputError, UsageError


def _picture(width: int = 500, height: int = 375) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def _of(model: str, weights: str = "none", *, imagenet_val: bool = False) -> Preprocessing:
    spec = parse_model(model)
    return plan(spec, {}, name=model, weights=weights, imagenet_val=imagenet_val).preprocessing


# DEFAULT of efficientnet_v2_s resizes to 384 and scales otherwise, that of resnet50 resizes to 232.
@pytest.mark.parametrize("name", ["resnet18", "resnet50", "efficientnet_v2_s"])
@pytest.mark.parametrize("weights", ["none", "DEFAULT"])
def test_the_weights_own_transforms(name: str, weights: str) -> None:
    own = models.get_model_weights(name).DEFAULT
    preprocessing = _of(name, weights)
    assert torch.equal(preprocessing(_picture()), own.transforms()(_picture()))
    assert preprocessing.description["name"] == str(own)
    assert preprocessing.description["crop_size"] == own.transforms().crop_size
    assert preprocessing.shape == (3, *own.transforms().crop_size * 2)


def test_another_entry_has_other_transforms() -> None:
    own = models.ResNet50_Weights.IMAGENET1K_V1.transforms()
    preprocessing = _of("resnet50", "IMAGENET1K_V1")
    assert torch.equal(preprocessing(_picture()), own(_picture()))
    assert preprocessing.description["resize_size"] == [256]


def test_without_weights_a_transformer_gets_its_own_size() -> None:
    preprocessing = _of("vit_h_14")  # whose DEFAULT is made for 518, and the model for 224
    assert preprocessing.shape == (3, 224, 224)


def test_timm_data_configuration() -> None:
    data: Any = timm.data
    config = data.resolve_model_data_config(timm.create_model("test_vit", pretrained=False))
    own = data.create_transform(**config, is_training=False)
    preprocessing = _of("timm:test_vit")
    assert torch.equal(preprocessing(_picture()), own(_picture()))
    assert preprocessing.description["crop_pct"] == config["crop_pct"]
    assert preprocessing.shape == config["input_size"]


def test_the_recipe_for_imagenet() -> None:
    recipe = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ]
    )
    preprocessing = _of("resnet50", imagenet_val=True)
    for picture in (_picture(), _picture(100, 300), _picture(224, 224)):
        assert torch.equal(preprocessing(picture), recipe(picture))
    assert preprocessing.description["name"] == "imagenet-val"


def test_detectors_keep_the_size_of_the_first_picture() -> None:
    preprocessing = _of("ssdlite320_mobilenet_v3_large")
    assert preprocessing.shape is None
    assert preprocessing(_picture(40, 30)).shape == (3, 30, 40)
    pinned = preprocessing.pinned(_picture(40, 30))
    assert pinned.shape == (3, 30, 40)
    assert torch.equal(pinned(_picture(40, 30)), preprocessing(_picture(40, 30)))
    with pytest.raises(InputError, match=r"becomes \[3, 40, 30\]"):
        pinned(_picture(30, 40))


@pytest.mark.parametrize(("name", "takes"), [("r3d_18", "clips"), ("raft_small", "pairs of")])
def test_models_of_clips_and_pairs_are_refused(name: str, takes: str) -> None:
    with pytest.raises(UsageError, match=f"its model takes {takes}"):
        _of(name)
