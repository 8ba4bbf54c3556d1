"""Rows and totals of `summary` and `params`: published numbers, and sums that must add up."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pttool.core.model.build import build
from pttool.core.model.parameters import Selection, params
from pttool.core.model.resolve import Resolved, resolve
from pttool.core.model.spec import InputSpec, parse_model
from pttool.core.model.summary import summary
from pttool.core.report import Report
from pttool.errors import UsageError

IMAGE = InputSpec((3, 224, 224))


def _published(name: str, **keywords: object) -> Resolved:
    return resolve(parse_model(name), keywords, name=name)


def _summary(model: nn.Module, *shapes: tuple[int, ...], **options: Any) -> Report:
    specs = [InputSpec(shape) for shape in shapes]
    return summary(Resolved("here", "here", model, "meta"), specs, **options)


@pytest.mark.parametrize(
    ("name", "parameters", "macs"),
    [
        ("alexnet", 61_100_840, 714_188_480),
        ("resnet18", 11_689_512, 1_814_073_344),
        ("resnet50", 25_557_032, 4_089_184_256),
        ("vgg16", 138_357_544, 15_470_264_320),
        ("mobilenet_v2", 3_504_872, 300_774_272),
        ("efficientnet_b0", 5_288_548, 385_814_752),
        ("convnext_tiny", 28_589_128, 4_455_531_264),
        ("vit_b_16", 86_567_656, 17_563_828_224),
        ("swin_t", 28_288_354, 4_490_566_656),
    ],
)
def test_published_models_are_exact_without_their_weights(
    name: str, parameters: int, macs: int
) -> None:
    resolved = _published(name)
    assert all(parameter.is_meta for parameter in resolved.module.parameters())
    totals = summary(resolved, [IMAGE]).summary
    assert (totals["params"], totals["macs"], totals["flops"]) == (parameters, macs, 2 * macs)
    assert (totals["device"], totals["partial"], totals["uncounted_ops"]) == ("meta", False, [])


def test_a_constructor_that_computes_with_values_is_built_on_meta_too() -> None:
    """RegNet's; 4,344,144 parameters are what torchvision publishes for regnet_y_400mf."""
    resolved = _published("regnet_y_400mf")
    assert all(tensor.is_meta for tensor in resolved.module.parameters())
    assert summary(resolved, []).summary["params"] == 4_344_144


@pytest.mark.parametrize(("name", "size"), [("inception_v3", 299), ("efficientnet_b3", 300)])
def test_without_inputs_the_weights_own_crop_size_is_used(name: str, size: int) -> None:
    report = summary(_published(name), [])
    assert report.items[0]["input_shape"] == [1, 3, size, size]


def test_keywords_reach_the_builder() -> None:
    report = params(_published("resnet18", num_classes=10), Selection())
    assert report.summary["params"] == 11_689_512 - 990 * (512 + 1)


@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "googlenet"])
def test_columns_add_up(name: str) -> None:
    """A row is its own tensors plus its children, also where submodules are never called."""
    resolved = _published(name)
    report = summary(resolved, [IMAGE])
    own = {
        path: sum(p.numel() for p in module._parameters.values() if p is not None)
        for path, module in resolved.module.named_modules()
    }
    items = report.items
    for index, item in enumerate(items):
        children = []
        for below in items[index + 1 :]:
            if below["depth"] <= item["depth"]:
                break
            if below["depth"] == item["depth"] + 1:
                children.append(below)
        assert item["params"] == own[item["name"]] + sum(child["params"] for child in children)
    assert items[0]["params"] == report.summary["params"]
    assert items[0]["macs"] == report.summary["macs"]


class Twice(nn.Module):
    """Calls one layer twice, ties one weight, and never calls a third layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.PReLU()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), self.act) for _ in range(2)])
        self.blocks[1][0].weight = self.fc.weight  # type: ignore[index]
        self.unused = nn.Linear(4, 9)

    def forward(self, x: Tensor) -> dict[str, Any]:
        x = self.fc(self.fc(x))
        for block in self.blocks:
            x = block(x)
        return {"out": x, "extra": (None, [x, 3])}


def test_shared_modules_and_tensors_count_once() -> None:
    report = _summary(Twice(), (4,))
    rows = [(i["name"], i["depth"], i["calls"], i["params"], i["macs"]) for i in report.items]
    assert rows == [
        ("", 0, 1, 20 + 20 + 1 + 4 + 45, 64),
        ("fc", 1, 2, 20, 16),
        ("fc", 1, 2, 0, 16),
        ("blocks.0", 1, 1, 21, 16),
        ("blocks.0.0", 2, 1, 20, 16),
        ("blocks.0.1", 2, 2, 1, 0),
        ("blocks.1", 1, 1, 4, 16),
        ("blocks.1.0", 2, 1, 4, 16),
        ("blocks.1.1", 2, 2, 0, 0),
        ("unused", 1, 0, 45, 0),
    ]
    assert report.summary["shared"] == [
        ["fc.weight", "blocks.1.0.weight"],
        ["act.weight", "blocks.0.1.weight", "blocks.1.1.weight"],
    ]
    assert report.items[0]["output_shape"] == {"out": [1, 4], "extra": [None, [[1, 4], 3]]}


def test_depth_leaves_rows_out_but_no_numbers() -> None:
    whole, top = _summary(Twice(), (4,)), _summary(Twice(), (4,), depth=0)
    assert [item["name"] for item in top.items] == [""]
    assert top.summary == whole.summary


class Broken(nn.Module):
    """Fails in its second layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(5, 5)
        self.third = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.third(self.second(self.first(x)))
        return out


def test_a_forward_that_fails_shows_what_it_reached() -> None:
    report = _summary(Broken(), (4,))
    assert report.summary["partial"] is True
    assert [item["name"] for item in report.items if item["calls"]] == ["", "first", "second"]
    assert report.items[1]["output_shape"] == [1, 4]
    assert report.items[2]["output_shape"] is None
    assert report.failure is not None
    assert "second, Linear(in_features=5" in report.failure.message


class Catches(nn.Module):
    """Tries one layer, catches its error, and takes another."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong = nn.Linear(5, 5)
        self.right = nn.Linear(4, 7)

    def forward(self, x: Tensor) -> Tensor:
        try:
            out: Tensor = self.wrong(x)
        except RuntimeError:
            out = self.right(x)
        return out


def test_an_error_that_the_forward_catches_is_none() -> None:
    report = _summary(Catches(), (4,))
    rows = [(i["name"], i["depth"], i["output_shape"], i["macs"]) for i in report.items]
    assert rows == [("", 0, [1, 7], 28), ("wrong", 1, None, 0), ("right", 1, [1, 7], 28)]
    assert report.failure is None


class TiedAndComputing(nn.Module):
    """Ties two weights, in a constructor that reads values of tensors."""

    def __init__(self) -> None:
        super().__init__()
        weight = nn.Parameter(torch.zeros(4, 4))
        self.rates = [rate.item() for rate in torch.linspace(0, 1, 3)]
        self.a, self.b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.a.weight = weight
        self.b.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.b(self.a(x))
        return out


def test_tied_weights_stay_tied_when_registered_on_meta() -> None:
    module = build(TiedAndComputing, "meta")
    assert module.a.weight.is_meta  # type: ignore[union-attr]
    report = _summary(module, (4,))
    assert (report.summary["params"], report.summary["macs"]) == (16, 32)
    assert report.summary["shared"] == [["a.weight", "b.weight"]]


class ReadsValues(nn.Module):
    """Decides by a tensor's value which way to go."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ x.T if x.sum() > -1e9 else x


def test_a_forward_that_needs_values_runs_on_the_cpu_and_says_so() -> None:
    report = _summary(ReadsValues(), (4,), batch=3)
    assert report.summary["device"] == "cpu"
    assert report.summary["macs"] == 3 * 3 * 4
    assert report.notes[0].startswith("run on the CPU")


class Random(nn.Module):
    """Multiplies as often as its generators say."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(random.randint(1, 50) + int(torch.randint(1, 50, ()))):
            x = x @ x.T @ x
        return x


def test_a_model_that_draws_random_numbers_counts_the_same_each_time() -> None:
    counts = {_summary(Random(), (4,)).summary["macs"] for _ in range(5)}
    assert len(counts) == 1


class OddOutputs(nn.Module):
    """Returns whatever its function makes of the input."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@dataclass
class Boxes:
    """An output as detectors of other libraries have it."""

    boxes: Tensor
    label: str | None = None


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: None, None),
        (lambda x: (x, [x, None]), [[1, 4], [[1, 4], None]]),
        (lambda x: {"a": x, 3: 2.5}, {"a": [1, 4], "3": 2.5}),
        (lambda x: Boxes(x), {"boxes": [1, 4], "label": None}),
        (lambda x: object(), "object"),
        (lambda x: iter([x]), "list_iterator"),
    ],
)
def test_odd_outputs_are_shown(function: Callable[[Tensor], Any], shape: Any) -> None:
    report = _summary(OddOutputs(function), (4,))
    assert report.failure is None
    assert report.summary["output_shape"] == shape


class Recursive(nn.Module):
    """Holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.me = self

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc(x)
        return out


def test_a_module_that_holds_itself_is_no_trap() -> None:
    assert _summary(Recursive(), (4,)).summary["params"] == 20


def test_blocks_that_hold_all_earlier_ones_are_no_trap() -> None:
    """Twenty of them have half a million paths."""
    blocks: list[nn.Module] = [nn.Linear(2, 2)]
    for _ in range(20):
        blocks.append(nn.Sequential(*blocks))
    report = params(Resolved("here", "here", blocks[-1], "cpu"), Selection())
    assert report.summary["params"] == 6


def test_two_thousand_layers() -> None:
    report = _summary(nn.Sequential(*[nn.Linear(2, 2) for _ in range(2000)]), (2,))
    assert len(report.items) == 2001
    assert report.summary["macs"] == 2000 * 4


def test_other_inputs_than_forward_takes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"2 input\(s\)"):
        _summary(Broken(), (4,), (4,))


def test_integer_inputs_index_any_embedding() -> None:
    resolved = Resolved("here", "here", nn.Embedding(1, 3), "cpu")
    report = summary(resolved, [InputSpec((7,), "int64")], batch=2)
    assert report.summary["output_shape"] == [2, 7, 3]


def test_params_lists_filters_and_sorts() -> None:
    model = Twice()
    model.fc.weight.requires_grad_(False)
    resolved = Resolved("here", "here", model, "cpu")
    everything = params(resolved, Selection())
    assert [item["name"] for item in everything.items][:2] == ["fc.weight", "fc.bias"]
    assert everything.items[0]["shared_with"] == ["blocks.1.0.weight"]
    assert everything.items[0]["bytes"] == 4 * 4 * 4
    assert everything.summary["frozen_params"] == 16
    by_alias = params(resolved, Selection(["blocks.1.*"], frozen=False))
    assert [item["name"] for item in by_alias.items] == ["act.weight", "blocks.1.0.bias"]


def test_lazy_parameters_are_unknown_not_zero() -> None:
    report = params(Resolved("here", "here", nn.LazyLinear(3), "cpu"), Selection())
    assert report.items[0]["numel"] is None
    assert report.notes[0].startswith("2 lazy parameters")
    assert _summary(nn.LazyLinear(3), (5,)).summary["params"] == 18


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_bytes_follow_the_dtype(dtype: torch.dtype) -> None:
    resolved = resolve(parse_model("alexnet"), {}, name="alexnet", dtype=str(dtype)[6:])
    assert params(resolved, Selection()).summary["param_bytes"] == 61_100_840 * dtype.itemsize
