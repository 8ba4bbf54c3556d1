"""All of torchvision's published figures: parameters, and operations (which it gives in GMACs)."""

from typing import Any

import pytest
import torchvision.models as models
from torch import Tensor, nn

from pttool.core.model.build import build
from pttool.core.model.resolve import Resolved, resolve
from pttool.core.model.spec import InputSpec, PublishedModel
from pttool.core.model.summary import summary
from pttool.errors import UsageError

ENTRIES = [
    pytest.param(name, entry, id=f"{name}-{entry.name}")
    for name in models.list_models()
    for entry in models.get_model_weights(name)
]
# Published from a run on a picture, where few boxes were found: the dense part is all of a
# detector's work before that, and the whole an upper bound.
DATA_DEPENDENT = {
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "keypointrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
}


@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_every_published_figure(name: str, entry: models.WeightsEnum) -> None:
    resolved = resolve(PublishedModel(name), {}, name=name, weights=entry.name)
    totals = summary(resolved, []).summary
    published = entry.meta["_ops"] * 1e9
    tolerance = max(0.0015e9, 0.001 * published)
    assert totals["params"] == entry.meta["num_params"]
    assert totals["weights"] == entry.name
    assert (totals["device"], totals["partial"], totals["uncounted_ops"]) == ("meta", False, [])
    if name in DATA_DEPENDENT:
        assert totals["macs_upper_bound"]
        assert totals["dense_macs"] - tolerance <= published <= totals["macs"] + tolerance
    else:
        assert abs(totals["macs"] - published) <= tolerance


def test_the_table_is_whole() -> None:
    """166 weight entries; five of them depend on the picture."""
    assert len(ENTRIES) >= 166
    assert sum(entry.values[0] in DATA_DEPENDENT for entry in ENTRIES) == 5


@pytest.mark.parametrize(
    ("name", "weights", "inputs", "parameters", "macs"),
    [
        ("r3d_18", None, [(3, 16, 112, 112)], 33_371_472, 40_696_553_472),
        ("fcn_resnet50", "COCO_WITH_VOC_LABELS_V1", [(3, 520, 520)], 35_322_218, 152_716_512_000),
        ("raft_small", None, [(3, 512, 512)] * 2, 990_162, 47_655_157_760),
        ("retinanet_resnet50_fpn", "COCO_V1", [(3, 800, 800)], 34_014_999, 151_540_437_248),
    ],
)
def test_exact_figures(
    name: str, weights: str | None, inputs: list[tuple[int, ...]], parameters: int, macs: int
) -> None:
    resolved = resolve(PublishedModel(name), {}, name=name, weights=weights)
    for specs in ([InputSpec(shape) for shape in inputs], []):
        totals = summary(resolved, specs).summary
        assert (totals["params"], totals["macs"]) == (parameters, macs)
        assert not totals["macs_upper_bound"]


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize(
    ("name", "batch", "saved"),
    # what autograd kept in a real run on the CPU, counted by saved_tensors_hooks
    [
        ("resnet18", 2, 44_398_080),
        ("mobilenet_v3_small", 2, 32_388_096),
        ("vit_b_32", 1, 30_439_312),
        ("vit_b_32", 2, 60_878_624),
    ],
)
def test_bytes_saved_for_the_backward(name: str, batch: int, saved: int, device: str) -> None:
    resolved = resolve(PublishedModel(name), {}, name=name, device=device)
    totals = summary(resolved, [InputSpec((3, 224, 224))], batch=batch, training=True).summary
    assert totals["saved_for_backward_bytes"] == saved


def test_a_detector_takes_a_batch_as_a_list_of_images() -> None:
    resolved = resolve(PublishedModel("ssdlite320_mobilenet_v3_large"), {}, name="ssdlite")
    report = summary(resolved, [InputSpec((3, 320, 320))], batch=2)
    assert report.items[0]["input_shape"] == [[3, 320, 320]] * 2


class Wrapped(nn.Module):
    """A detector inside a user's module."""

    def __init__(self) -> None:
        super().__init__()
        self.detector = models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None
        )

    def forward(self, images: Tensor) -> Any:
        return self.detector(list(images))


def test_a_detector_inside_another_module_is_bounded_too() -> None:
    module = build(Wrapped, "meta")
    totals = summary(Resolved("w", "here", module, "meta"), [InputSpec((3, 320, 320))]).summary
    assert totals["macs_upper_bound"]
    assert totals["dense_macs"] == 718_998_400
    assert totals["device"] == "meta"


def test_weights_that_are_not_published_are_refused() -> None:
    with pytest.raises(UsageError, match="'IMAGENET1K_V9'") as refused:
        resolve(PublishedModel("resnet50"), {}, name="resnet50", weights="IMAGENET1K_V9")
    assert refused.value.hint == "it has IMAGENET1K_V1, IMAGENET1K_V2"
