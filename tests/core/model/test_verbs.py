"""The smaller verbs: layers, freeze, graph, models of timm, and the second opinion."""

import shutil
import subprocess
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn
from torch.nn.utils.prune import l1_unstructured

from pttool.core.model.freeze import freeze
from pttool.core.model.graph import graph, to_svg
from pttool.core.model.layers import layers
from pttool.core.model.parameters import Selection, params
from pttool.core.model.resolve import Resolved, resolve
from pttool.core.model.spec import InputSpec, TimmModel, parse_model
from pttool.core.model.summary import summary
from pttool.core.model.verify import with_second_opinion
from pttool.errors import UsageError


def _resolved(name: str) -> Resolved:
    return resolve(parse_model(name), {}, name=name)


class Residual(nn.Module):
    """Two branches that meet, with an operator between the modules, and a layer used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.branch = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.unused = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        out: Tensor = self.head(self.head(self.branch(x) + x))
        return out


def _residual() -> Resolved:
    return Resolved("net", "here", Residual(), "meta")


def test_layers_are_listed_in_the_order_of_calls() -> None:
    report = layers(_residual(), [InputSpec((4,))])
    assert [(item["name"], item["call"], item["calls"]) for item in report.items] == [
        ("stem", 0, 1),
        ("branch", 0, 1),
        ("branch.0", 0, 1),
        ("branch.1", 0, 1),
        ("head", 0, 2),
        ("head", 1, 2),
    ]
    assert report.items[0]["output_shape"] == [1, 4]
    assert report.summary["never_called"] == ["unused"]


def _edges(dot: str) -> set[tuple[str, str]]:
    arrows = [line.strip(" ;").split(" -> ") for line in dot.splitlines() if " -> " in line]
    return {(source.strip('"'), target.strip('"')) for source, target in arrows}


def test_the_graph_follows_tensors_through_operators() -> None:
    assert _edges(graph(_residual(), [InputSpec((4,))])) == {
        ("input", "stem"),
        ("stem", "branch.0"),
        ("branch.0", "branch.1"),
        ("branch.1", "head"),
        ("stem", "head"),
        ("head", "head:1"),
        ("head:1", "output"),
    }
    shallow = _edges(graph(_residual(), [InputSpec((4,))], depth=1))
    assert {("stem", "branch"), ("branch", "head"), ("stem", "head")} <= shallow


def test_the_graph_of_resnet18_has_its_shortcuts() -> None:
    edges = _edges(graph(_resolved("resnet18"), [], depth=3))
    assert ("layer1.0.relu:1", "layer1.1.conv1") in edges
    assert ("maxpool", "layer1.0.relu:1") in edges


def test_the_graph_of_a_detector_is_drawn_with_its_upper_bounds() -> None:
    edges = _edges(graph(_resolved("fasterrcnn_mobilenet_v3_large_320_fpn"), [], depth=1))
    assert ("backbone", "rpn") in edges
    assert ("backbone", "roi_heads") in edges


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it() -> None:
    assert b"<svg" in to_svg(graph(_residual(), [InputSpec((4,))]))


def test_freeze_matches_whole_names() -> None:
    """resnet18's conv1, bn1 and layer1 hold 9,408 + 128 + 147,968 of its parameters."""
    report = freeze(_resolved("resnet18"), ["conv1", "bn1", "layer1"])
    assert report.summary["trainable_before"] == 11_689_512
    assert report.summary["trainable_after"] == 11_689_512 - 9_408 - 128 - 147_968
    assert all(item["name"].startswith(("conv1.", "bn1.", "layer1.")) for item in report.items)
    assert "running statistics" in report.notes[0]


def test_freeze_agrees_with_setting_requires_grad() -> None:
    model = Residual()
    for parameter in model.branch.parameters():
        parameter.requires_grad_(False)
    left = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert freeze(_residual(), ["branch.*"]).summary["trainable_after"] == left


def test_a_pattern_without_a_match_is_refused() -> None:
    with pytest.raises(UsageError, match="'conv'") as refused:
        freeze(_resolved("resnet18"), ["conv"])
    assert refused.value.hint is not None
    assert "conv1" in refused.value.hint


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224", "mobilenetv3_small_100"])
def test_models_of_timm(name: str) -> None:
    resolved = resolve(TimmModel(name), {}, name=f"timm:{name}")
    totals = summary(resolved, []).summary
    model = timm.create_model(name)
    assert totals["params"] == sum(parameter.numel() for parameter in model.parameters())
    assert totals["output_shape"] == [1, 1000]
    assert totals["device"] == "meta"


def test_timm_and_torchvision_agree_on_resnet18() -> None:
    ours = summary(_resolved("timm:resnet18"), []).summary
    assert (ours["params"], ours["macs"]) == (11_689_512, 1_814_073_344)


def test_unknown_timm_models_are_refused() -> None:
    with pytest.raises(UsageError, match="'resnet19'"):
        _resolved("timm:resnet19")


def test_the_second_opinion_is_torchinfos() -> None:
    """torchinfo 1.8 counts alexnet's biases as MACs, and none of the attention in vit_b_16."""
    resolved = _resolved("alexnet")
    report = with_second_opinion(summary(resolved, []), resolved, resolved.default_inputs, 1)
    assert report.summary["verify"]["torchinfo"] == {"params": 61_100_840, "macs": 714_682_664}
    assert report.summary["verify"]["difference"] == {"params": 0, "macs": -494_184}
    report = with_second_opinion(params(resolved, Selection()), resolved, (), None)
    assert report.summary["verify"]["difference"] == {"params": 0}


class Quantized(nn.Module):
    """A dynamically quantized layer."""

    def __init__(self) -> None:
        super().__init__()
        float_layer: Any = nn.Sequential(nn.Linear(32, 8))
        self.layers = torch.ao.quantization.quantize_dynamic(float_layer, {nn.Linear})  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:UserWarning")
def test_quantized_layers_count() -> None:
    report = summary(Resolved("quantized", "here", Quantized(), "cpu"), [InputSpec((32,))], batch=2)
    assert report.summary["params"] == 32 * 8 + 8
    assert report.summary["param_bytes"] == 32 * 8 + 8 * 4
    assert report.summary["macs"] == 2 * 32 * 8


def test_the_masks_of_pruned_layers_are_buffers() -> None:
    layer = l1_unstructured(nn.Linear(4, 4), "weight", 0.5)  # type: ignore[no-untyped-call]
    report = summary(Resolved("pruned", "here", nn.Sequential(layer), "meta"), [InputSpec((4,))])
    assert (report.summary["params"], report.summary["buffers"]) == (20, 16)


def test_graphviz_is_asked_for_politely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    from pttool.errors import UnavailableError

    with pytest.raises(UnavailableError, match="Graphviz"):
        to_svg("digraph {}")


def test_dot_is_valid_for_odd_names() -> None:
    resolved = Resolved('a"b\\c', "here", nn.Sequential(nn.Linear(4, 4)), "meta")
    dot = graph(resolved, [InputSpec((4,))])
    assert dot.startswith('digraph "a\\"b\\\\c" {')
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tdot"], input=dot.encode(), check=True, capture_output=True)
