"""match: what load_state_dict says, and the prefix with which it would say less."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from pttool.core.ckpt.comparing.prefixes import Shapes
from pttool.core.ckpt.editing.renaming import Renaming
from pttool.core.ckpt.match import match, only_unmatched
from pttool.core.ckpt.strip_dataparallel import strip_dataparallel
from pttool.core.report import Report
from pttool.errors import CheckFailedError, InputError, UsageError
from tests.core.ckpt.corpus_state_dicts import prefixed, small_net

SMALL_NET = "small_net"


def _shapes(module: nn.Module) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _saved(tmp_path: Path, state: object) -> Path:
    torch.save(state, tmp_path / "a.pt")
    return tmp_path / "a.pt"


def _renaming(words: list[str]) -> Renaming:
    """Return what the options of a command say."""
    prefix, added = (
        words[words.index(option) + 1] if option in words else None
        for option in ("--prefix", "--add-prefix")
    )
    return Renaming.of(prefix, added, anywhere=False, partial="--partial" in words)


def _keys(report: Report, status: str) -> list[str]:
    return [item["key"] for item in report.items if item["status"] == status]


def test_a_complete_checkpoint(tmp_path: Path) -> None:
    net = small_net()
    report = match(_saved(tmp_path, net.state_dict()), _shapes(net), SMALL_NET)
    assert report.failure is None
    assert _keys(report, "matched") == list(net.state_dict())
    assert report.summary["matched_parameters"] == 1
    assert report.summary["strip_prefix"] is None
    assert only_unmatched(report).items == []


def test_what_load_state_dict_says(tmp_path: Path) -> None:
    net = small_net()
    state = net.state_dict()
    del state["bn.num_batches_tracked"], state["conv.bias"]
    state["head.weight"] = torch.ones(2)
    said = net.load_state_dict(state, strict=False)
    report = match(_saved(tmp_path, state), _shapes(net), SMALL_NET)
    assert _keys(report, "missing") == said.missing_keys
    assert _keys(report, "unexpected") == said.unexpected_keys
    assert isinstance(report.failure, CheckFailedError)
    assert "2 missing, 1 unexpected" in report.failure.message


def test_another_shape(tmp_path: Path) -> None:
    net = small_net()
    state = {**net.state_dict(), "fc.weight": torch.ones(10, 2)}
    with pytest.raises(RuntimeError, match=r"size mismatch for fc\.weight"):
        net.load_state_dict(state, strict=False)
    report = match(_saved(tmp_path, state), _shapes(net), SMALL_NET)
    (item,) = [item for item in report.items if item["status"] == "shape"]
    assert (item["checkpoint_shape"], item["model_shape"]) == ((10, 2), (3, 2))
    assert report.summary["mismatched"] == 1
    elements = sum(tensor.numel() for tensor in net.state_dict().values())
    assert report.summary["matched_parameters"] == pytest.approx((elements - 6) / elements)


@pytest.mark.parametrize(
    ("prefix", "wanted", "command"),
    [
        ("module.", "", ""),
        ("_orig_mod.module.", "", ""),
        ("model.", "", "--prefix model."),
        ("model._orig_mod.", "", "--prefix model."),
        ("net.encoder.", "", "--prefix net.encoder."),
        ("", "backbone.", "--add-prefix backbone."),
        ("module.", "backbone.", "--prefix module. --add-prefix backbone."),
        ("teacher.net.", "student.", "--prefix teacher.net. --add-prefix student."),
        ("teacher.", "student.net.", "--prefix teacher. --add-prefix student.net."),
    ],
)
def test_the_prefix_is_found_and_the_command_does_it(
    tmp_path: Path, prefix: str, wanted: str, command: str
) -> None:
    model = nn.Module()
    inner = model
    for part in wanted.split(".")[:-1]:
        inner.add_module(part, child := nn.Module())
        inner = child
    for name, layer in small_net().named_children():
        inner.add_module(name, layer)
    path = _saved(tmp_path, prefixed(prefix))
    report = match(path, _shapes(model), "model")
    assert report.summary["matched"] == 0
    assert report.summary["matched_with_prefix"] == 9
    assert report.failure is not None
    assert report.failure.hint is not None
    words = shlex.split(report.failure.hint.partition(": ")[2])
    assert words[:4] == ["pttool", "ckpt", "strip-dataparallel", str(path)]
    assert words[6:] == command.split()
    strip_dataparallel(path, tmp_path / "out.pt", _renaming(words))
    assert match(tmp_path / "out.pt", _shapes(model), "model").failure is None
    applied = match(path, _shapes(model), "model", apply_prefix=True)
    assert applied.failure is None
    old = dict(zip(model.state_dict(), prefixed(prefix), strict=True))
    assert {item["key"]: item["checkpoint_key"] for item in applied.items} == old


def test_a_prefix_of_some_keys(tmp_path: Path) -> None:
    state = {**prefixed("model."), "loss.weight": torch.ones(4)}
    report = match(_saved(tmp_path, {"state_dict": state}), _shapes(small_net()), SMALL_NET)
    assert report.summary["weights"] == "state_dict"
    assert report.summary["matched_with_prefix"] == 9
    assert report.failure is not None
    assert "--prefix model. --partial" in (report.failure.hint or "")


@pytest.mark.parametrize(
    "name",
    ["state_dict.legacy.pt", "whole_module.pt", "state_dict.p2.pkl", "whole_parallel.pt",
     "safetensors/state_dict.safetensors", "sharded_torch/pytorch_model.bin.index.json",
     "distributed"],
)  # fmt: skip
def test_every_format(corpus: dict[str, Path], name: str) -> None:
    report = match(corpus[name], _shapes(small_net()), SMALL_NET)
    assert report.failure is None
    assert report.summary["matched"] == 9


def test_a_key(tmp_path: Path) -> None:
    both: dict[str, Any] = {"model": prefixed("other."), "ema": small_net().state_dict()}
    path = _saved(tmp_path, both)
    assert match(path, _shapes(small_net()), SMALL_NET, key="ema").failure is None
    with pytest.raises(UsageError, match="has no key emma"):
        match(path, _shapes(small_net()), SMALL_NET, key="emma")


def test_no_weights(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no weights"):
        match(_saved(tmp_path, {"epoch": 3}), _shapes(small_net()), SMALL_NET)


def test_names_without_end(tmp_path: Path) -> None:
    save_file({"." * 20_000 + "x" * at: torch.ones(1) for at in range(50)}, tmp_path / "a")
    assert match(tmp_path / "a", _shapes(small_net()), SMALL_NET).summary["unexpected"] == 50
