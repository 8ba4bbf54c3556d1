"""`profile model` against torch's own counts, and what it must leave as it was."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.profile.measuring import ceiling
from pttool.core.profile.measuring.running import Conditions
from pttool.core.profile.model import model as profile_model
from pttool.core.profile.percentiles import percentile
from pttool.core.report import Report

IMAGE = [InputSpec((3, 8, 8))]


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare time: what the ceiling is, no test here asks."""
    monkeypatch.setattr(ceiling, "SIZES", (256,))


def _convolutions() -> nn.Sequential:
    convolution, norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    return nn.Sequential(convolution, norm, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))


def _profiled(
    module: nn.Module,
    specs: Sequence[InputSpec] = IMAGE,
    *,
    batches: Sequence[int | None] = (2,),
    conditions: Conditions = Conditions(min_time_s=0),  # noqa: B008
) -> Report:
    resolved = Resolved("net", "a test", module, "cpu")
    return profile_model(resolved, specs, batches=batches, conditions=conditions)


def _train_once(module: nn.Module, images: torch.Tensor) -> None:
    output = module.train()(images)
    output.backward(torch.ones_like(output))


def _infer_once(module: nn.Module, images: torch.Tensor) -> None:
    with torch.no_grad():
        module.eval()(images)


ONCE = [
    pytest.param(False, _infer_once, id="eval"),
    pytest.param(True, _train_once, id="train"),
]


@pytest.mark.parametrize(("training", "once"), ONCE)
def test_macs_are_those_of_torchs_own_counter(
    training: bool, once: Callable[[nn.Module, torch.Tensor], None]
) -> None:
    module = _convolutions()
    report = _profiled(module, conditions=Conditions(training, min_time_s=0))
    with FlopCounterMode(display=False) as counter:
        once(module, torch.randn(2, 3, 8, 8))
    assert report.items[0]["macs"] == counter.get_total_flops() / 2


@pytest.mark.parametrize(("training", "once"), ONCE)
def test_ops_are_those_that_torchs_own_profiler_counts_in_one_call(
    training: bool, once: Callable[[nn.Module, torch.Tensor], None]
) -> None:
    module, images = _convolutions(), torch.randn(2, 3, 8, 8)
    report = _profiled(module, conditions=Conditions(training, min_time_s=0))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        once(module, images)
    theirs = {event.key: event.count for event in profiler.key_averages()}
    ours = {op["name"]: op["calls"] for op in report.summary["ops"]}
    products = ("conv", "addmm", "batch_norm", "relu", "threshold")
    assert {n: c for n, c in ours.items() if any(p in n for p in products)} == {
        n: c for n, c in theirs.items() if any(p in n for p in products)
    }


def test_peak_memory_is_weights_inputs_and_the_most_that_a_call_holds() -> None:
    """Between two layers both activations live; behind the second the first one is freed."""
    module = nn.Sequential(nn.Linear(8, 100, bias=False), nn.Linear(100, 50, bias=False))
    items = _profiled(module, [InputSpec((8,))], batches=[1, 6]).items
    weights = 8 * 100 + 100 * 50
    expected = [4 * (weights + batch * (8 + 100 + 50)) for batch in (1, 6)]
    assert [item["peak_bytes"] for item in items] == expected


def test_training_holds_gradients_and_what_the_backward_needs() -> None:
    module = nn.Linear(8, 100, bias=False)
    specs = [InputSpec((8,))]
    inference, training = (
        _profiled(module, specs, conditions=Conditions(mode, min_time_s=0)).items[0]["peak_bytes"]
        for mode in (False, True)
    )
    assert training >= inference + 4 * 8 * 100


class Twice(nn.Module):
    """Calls a layer twice, and another one below a block."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.block = nn.Sequential(nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.block(self.layer(self.layer(x)))
        return found


def test_modules_have_their_qualified_names_and_exclusive_times() -> None:
    summary = _profiled(Twice(), [InputSpec((8,))]).summary
    modules = {module["name"]: module for module in summary["modules"]}
    calls = {name: module["calls"] for name, module in modules.items()}
    assert calls == {"": 1, "layer": 2, "block": 1, "block.0": 1, "block.1": 1}
    assert {name: modules[name]["type"] for name in ("", "block.1")} == {
        "": "Twice", "block.1": "Linear",
    }  # fmt: skip
    assert modules["layer"]["self_ms"] == modules["layer"]["total_ms"]
    inside = modules["block.0"]["total_ms"] + modules["block.1"]["total_ms"]
    assert modules["block"]["self_ms"] <= modules["block"]["total_ms"] - inside
    assert sum(module["self_ms"] for module in modules.values()) <= modules[""]["total_ms"]
    assert modules["block.1"]["macs"] == 2 * 8 * 3
    assert modules["layer"]["macs"] == 2 * (2 * 8 * 8)


def test_a_model_that_allocates_nothing_has_its_input_in_memory() -> None:
    item = _profiled(nn.Identity(), [InputSpec((8,))]).items[0]
    assert (item["peak_bytes"], item["macs"]) == (2 * 8 * 4, 0)


@pytest.mark.parametrize("training", [False, True])
def test_the_module_is_left_as_it_was(training: bool) -> None:
    module = _convolutions().train(not training)
    weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    conditions = Conditions(training, channels_last=True, threads=1, min_time_s=0)
    report = _profiled(module, conditions=conditions)
    assert (report.summary["threads"], torch.get_num_threads()) == (1, threads)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(each.training is not training for each in module.modules())
    assert all(parameter.grad is None for parameter in module.parameters())
    assert all(torch.equal(tensor, weights[n]) for n, tensor in module.state_dict().items())
    assert all(parameter.is_contiguous() for parameter in module.parameters())
    assert not module._forward_hooks


class Seen(nn.Module):
    """Tells in which form its weight and input come, and whether a gradient is asked for."""

    forms: set[tuple[bool, ...]] = set()  # noqa: RUF012  (its own would be put back)

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = (x, self.convolution.weight)
        in_format = [each.is_contiguous(memory_format=torch.channels_last) for each in both]
        self.forms.add((*in_format, torch.is_grad_enabled(), self.training))
        found: torch.Tensor = self.convolution(x)
        return found


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_the_model_runs_as_told(training: bool, channels_last: bool) -> None:
    Seen.forms.clear()
    _profiled(Seen(), conditions=Conditions(training, channels_last, min_time_s=0))
    counted = (False, False, training, training)
    assert Seen.forms == {counted, (channels_last, channels_last, training, training)}


@pytest.mark.verify
def test_a_compiled_model_computes_by_generated_code() -> None:
    summary = _profiled(_convolutions(), conditions=Conditions(compiled=True, min_time_s=0)).summary
    assert any("CompiledFxGraph" in op["name"] for op in summary["ops"])
    assert summary["modules"] == []


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.sampled_from([0.5, 0.9, 0.99]))
def test_percentiles_are_numpys_by_nearest_rank(values: list[float], fraction: float) -> None:
    expected = np.percentile(values, 100 * fraction, method="inverted_cdf")
    assert percentile(sorted(values), fraction) == expected
