"""The listing of layers: shapes, calls, kinds, aliases, bytes."""

from pathlib import Path
from typing import Any

from pttool.core.features.layers import layers
from pttool.core.model.resolve import resolve
from pttool.core.model.spec import InputSpec, parse_model

CONTROL_FLOW = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 8, 3)
    def forward(self, x, flag=True):
        x = self.a(x)
        return self.b(x) if flag and x.mean() > -1e9 else x
"""


def _listed(model: str, *specs: InputSpec) -> dict[str, dict[str, Any]]:
    report = layers(resolve(parse_model(model), {}, name=model), specs)
    assert report.failure is None
    assert all(tuple(item) == report.fields for item in report.items)
    return {item["name"]: dict(item) for item in report.items}


def test_layers_of_vgg16() -> None:
    items = _listed("vgg16")
    assert len(items) == 41  # without the root: 31 + 7 and features, avgpool, classifier
    assert items["features.29"] == {
        "name": "features.29",
        "type": "ReLU",
        "output_shape": [1, 512, 14, 14],
        "calls": 1,
        "output_kind": "tensor",
        "aliases": ["relu5_3"],
        "image_bytes": 512 * 14 * 14 * 4,
        "never_called": False,
        "output_dtype": "float32",
        "call_shapes": [[1, 512, 14, 14]],
    }
    assert list(items)[:3] == ["features", "features.0", "features.1"]


def test_a_module_called_twice_and_one_never_called() -> None:
    assert _listed("resnet18")["layer1.0.relu"]["calls"] == 2
    items = _listed("vit_b_16")
    attention = items["encoder.layers.encoder_layer_0.self_attention"]
    assert attention["output_kind"] == "tuple"
    assert attention["output_shape"] == {"[0]": [1, 197, 768]}
    never = items["encoder.layers.encoder_layer_0.self_attention.out_proj"]
    assert (never["never_called"], never["calls"], never["output_shape"]) == (True, 0, None)
    assert items["encoder"]["output_shape"] == [1, 197, 768]
    assert list(items)[-1].endswith("out_proj")


def test_a_detector_has_layers_without_rows() -> None:
    items = _listed("fasterrcnn_resnet50_fpn")
    assert items["backbone"]["output_kind"] == "dict"
    assert items["backbone"]["output_shape"]["[pool]"] == [1, 256, 13, 13]
    assert items["roi_heads.box_head"]["image_bytes"] is None
    assert len(items["rpn.head.cls_logits"]["call_shapes"]) == 5  # once for each level


def test_control_flow_on_values_and_a_size_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(CONTROL_FLOW)
    items = _listed(f"{tmp_path / 'net.py'}:Net", InputSpec((3, 32, 32)))
    assert items["b"]["output_shape"] == [1, 8, 28, 28]
    assert items["b"]["image_bytes"] == 8 * 28 * 28 * 4


def test_a_forward_that_fails_still_lists_what_it_reached(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(CONTROL_FLOW)
    resolved = resolve(parse_model(f"{tmp_path / 'net.py'}:Net"), {}, name="net.py:Net")
    report = layers(resolved, [InputSpec((3, 3, 3))])
    assert report.failure is not None
    assert "the forward failed in b" in report.failure.message
    assert [(item["name"], item["calls"]) for item in report.items] == [("a", 1), ("b", 0)]


def test_lazy_modules_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text(
        "import torch\n"
        "def net():\n"
        "    return torch.nn.Sequential(torch.nn.LazyConv2d(4, 3), torch.nn.ReLU())\n"
    )
    items = _listed(f"{tmp_path / 'lazy.py'}:net", InputSpec((3, 8, 8)))
    assert [item["calls"] for item in items.values()] == [1, 1]
