"""diff: what numpy and torch say of the same two files, keys, shapes, types and values."""

import argparse
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from pttool.core.ckpt.diff import diff
from pttool.core.report import Report
from pttool.errors import CheckFailedError, InputError, UsageError
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.corpus_state_dicts import prefixed, small_net

FILES = ("a.pt", "b.pt")


def _diff(tmp_path: Path, a: object, b: object, **options: Any) -> Report:
    """Save both and compare them."""
    for name, value in zip(FILES, (a, b), strict=True):
        torch.save(value, tmp_path / name)
    return diff(tmp_path / "a.pt", tmp_path / "b.pt", **options)


def _statuses(report: Report) -> dict[str, str]:
    return {item["key"]: item["status"] for item in report.items}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_equals_itself(corpus: dict[str, Path], name: str) -> None:
    report = diff(corpus[name], corpus[name], values=True)
    assert report.failure is None
    assert report.items == []
    assert report.summary["bit_equal"] in (True, None)


@pytest.mark.parametrize(
    ("a", "b"),
    [("training.pt", "training.p4.pt"), ("training.pt", "training.legacy.pt"),
     ("training.pt", "training.cuda0.pt"), ("whole_module.pt", "whole_module.legacy_p4.pt"),
     ("objects.pt", "objects.p5.pt"), ("sparse.pt", "sparse.legacy.pt"),
     ("distributed", "distributed_files"), ("views.pt", "views.legacy.pt"),
     ("state_dict.pt", "safetensors/state_dict.safetensors"),
     ("state_dict.pt", "sharded_torch/pytorch_model.bin.index.json"),
     ("state_dict.pt", "whole_module.pt"), ("numpy/arrays.npz", "numpy/compressed.npz")],
)  # fmt: skip
def test_formats_that_hold_the_same(corpus: dict[str, Path], a: str, b: str) -> None:
    for one, other in ((a, b), (b, a)):
        report = diff(corpus[one], corpus[other], values=True)
        assert (report.failure, report.items) == (None, [])
        assert report.summary["tensors"] > 0
        assert report.summary["bit_equal"] is True


def test_keys_shapes_and_types(tmp_path: Path) -> None:
    a = {"same": torch.ones(2), "gone": torch.ones(1), "grown": torch.ones(2, 3),
         "cast": torch.ones(4), "moved": torch.ones(1)}  # fmt: skip
    b = {"moved": torch.ones(1), "same": torch.ones(2), "grown": torch.ones(3, 3),
         "cast": torch.ones(4).half(), "new": torch.ones(1)}  # fmt: skip
    report = _diff(tmp_path, a, b)
    assert _statuses(report) == {
        "gone": "only_a", "grown": "shape", "cast": "dtype", "new": "only_b",
    }  # fmt: skip
    texts = {item["key"]: (item["a"], item["b"]) for item in report.items}
    assert texts["grown"] == ("float32 [2, 3]", "float32 [3, 3]")
    assert texts["cast"] == ("float32 [4]", "float16 [4]")
    names = ("tensors", "equal", "changed", "only_a", "only_b")
    assert [report.summary[name] for name in names] == [4, 2, 2, 1, 1]
    assert isinstance(report.failure, CheckFailedError)
    assert report.failure.message.endswith("differ: 2 changed, 1 only in A, 1 only in B")


def test_elements_are_read_only_when_asked_for(tmp_path: Path) -> None:
    report = _diff(tmp_path, {"w": torch.ones(2)}, {"w": torch.zeros(2)})
    assert report.failure is None
    assert report.summary["bit_equal"] is None
    assert any("--values" in note for note in report.notes)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "complex64",
                                   "float8_e4m3fn", "int64", "int8", "uint8", "bool"])  # fmt: skip
def test_differences_are_numpys(tmp_path: Path, dtype: str) -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(50, 70).mul(9).round().to(getattr(torch, dtype)) for _ in "ab")
    b[:20] = a[:20]
    report = _diff(tmp_path, {"w": a}, {"w": b.t().contiguous().t()}, values=True)
    wide = torch.complex128 if dtype == "complex64" else torch.float64
    x, y = (each.to(wide).numpy() for each in (a, b))
    apart, scale = np.abs(x - y), np.maximum(np.abs(x), np.abs(y))
    (item,) = report.items
    assert item["status"] == "values"
    assert item["max_abs_diff"] == pytest.approx(apart.max(), rel=1e-12)
    assert item["max_rel_diff"] == pytest.approx((apart[scale > 0] / scale[scale > 0]).max())
    same = (a.view(torch.uint8) == b.view(torch.uint8)).view(a.numel(), -1).all(1)
    assert (item["equal_elements"], item["numel"]) == (int(same.sum()), 3500)


def test_another_type_is_compared_by_value(tmp_path: Path) -> None:
    a = torch.arange(1000.0) / 7
    report = _diff(tmp_path, {"w": a}, {"w": a.bfloat16()}, values=True)
    (item,) = report.items
    apart = (a.double() - a.bfloat16().double()).abs()
    assert item["status"] == "dtype"
    assert item["max_abs_diff"] == apart.max().item()
    assert item["equal_elements"] == int((apart == 0).sum())


def test_whole_numbers_are_exact(tmp_path: Path) -> None:
    a, b = torch.tensor([2**62, -(2**63)]), torch.tensor([2**62 - 1, 2**63 - 1])
    report = _diff(tmp_path, {"w": a}, {"w": b}, values=True)
    assert report.items[0]["max_abs_diff"] == 2**64 - 1


def test_zeros_and_nans(tmp_path: Path) -> None:
    nan = torch.tensor([math.nan, 1.0])
    same = _diff(tmp_path, {"w": nan}, {"w": nan.clone()}, values=True)
    assert same.failure is None
    signs = _diff(tmp_path, {"w": torch.tensor([0.0])}, {"w": torch.tensor([-0.0])}, values=True)
    assert (signs.items[0]["max_abs_diff"], signs.items[0]["equal_elements"]) == (0, 0)
    assert any("in bits alone" in note for note in signs.notes)
    blown = _diff(
        tmp_path, {"w": torch.tensor([1.0, math.inf])}, {"w": torch.tensor([math.nan, math.inf])},
        values=True,
    )  # fmt: skip
    assert (blown.items[0]["nonfinite_diffs"], blown.items[0]["equal_elements"]) == (1, 1)


def test_values_that_are_no_tensors(tmp_path: Path) -> None:
    a = {"epoch": 3, "lr": 1e-3, "args": argparse.Namespace(lr=0.1, gpus=[0, 1]),
         "rng": b"x" * 5000, "nan": math.nan, "one": 1, "classes": np.arange(50)}  # fmt: skip
    b = {**a, "epoch": 4, "args": argparse.Namespace(lr=0.2, gpus=[0, 1]), "one": True,
         "rng": b"x" * 4999 + b"y", "classes": np.arange(1, 51)}  # fmt: skip
    report = _diff(tmp_path, a, b)
    assert _statuses(report) == dict.fromkeys(
        ("epoch", "args.lr", "rng", "one", "classes"), "value"
    )
    epoch = next(item for item in report.items if item["key"] == "epoch")
    assert (epoch["a"], epoch["b"]) == (3, 4)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_chunks_that_are_no_tensors(tmp_path: Path) -> None:
    from torch.distributed.checkpoint.filesystem import FileSystemWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    for name, epoch in zip("ab", (3, 4), strict=True):
        state = {"w": torch.ones(3), "epoch": epoch, "lr": 0.1}
        save(state, storage_writer=FileSystemWriter(tmp_path / name), no_dist=True)
    report = diff(tmp_path / "a", tmp_path / "b", values=True)
    assert [(item["key"], item["a"], item["b"]) for item in report.items] == [("epoch", 3, 4)]


def test_the_order_of_keys_is_no_difference(tmp_path: Path) -> None:
    a = {"x": torch.ones(1), "y": torch.zeros(1), "n": 1}
    assert _diff(tmp_path, a, dict(reversed(a.items())), values=True).failure is None


def test_a_prefix_is_said(tmp_path: Path) -> None:
    report = _diff(tmp_path, small_net().state_dict(), {"model": prefixed("module.")})
    assert report.summary["tensors"] == 0
    assert report.failure is not None
    assert report.failure.hint is not None
    command = f"pttool ckpt strip-dataparallel {tmp_path / 'b.pt'} -o OUT"
    assert report.failure.hint == f"to rename the keys: {command}"


def test_keys_and_globs(tmp_path: Path) -> None:
    a = {"model": {"w": torch.ones(1), "b": torch.ones(1)}, "ema": {"w": torch.ones(1)}, "n": 1}
    b = {"model": {"w": torch.zeros(1), "b": torch.ones(1)}, "ema": {"w": torch.ones(1)}, "n": 2}
    assert set(_statuses(_diff(tmp_path, a, b, values=True))) == {"model.w", "n"}
    assert set(_statuses(_diff(tmp_path, a, b, values=True, pattern="model.*"))) == {"model.w"}
    ema = _diff(tmp_path, a, b, values=True, key_a="ema", key_b="ema")
    assert ema.failure is None
    across = _diff(tmp_path, a, b, values=True, key_a="ema", key_b="model", every=True)
    assert _statuses(across) == {"w": "values", "b": "only_b"}
    with pytest.raises(UsageError, match="has no key emma"):
        _diff(tmp_path, a, b, key_a="emma")


def test_damage_is_an_error_not_a_difference(tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "a.safetensors")
    (tmp_path / "b.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes()[:-1])
    with pytest.raises(InputError, match="cut short"):
        diff(tmp_path / "a.safetensors", tmp_path / "b.safetensors", values=True)


@pytest.mark.parametrize("view", ["same", "transposed", "sliced"])
def test_memory_does_not_grow_with_the_tensors(tmp_path: Path, view: str) -> None:
    whole = torch.arange(8_000_000, dtype=torch.float32).view(2, -1)
    a = {"same": whole, "transposed": whole.t(), "sliced": whole[:, ::2]}[view]
    b = a.contiguous().double()
    for name, tensor in zip(FILES, (a, b), strict=True):
        torch.save({"w": tensor}, tmp_path / name)
    tracemalloc.start()
    try:
        report = diff(tmp_path / "a.pt", tmp_path / "b.pt", values=True)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20 < a.nbytes + b.nbytes
    finally:
        tracemalloc.stop()
    assert (report.items[0]["status"], report.items[0]["max_abs_diff"]) == ("dtype", 0)


def test_a_view_that_repeats_its_elements(tmp_path: Path) -> None:
    a, b = (torch.tensor([1.0, at]).expand(1 << 40, 2) for at in (2, 3))
    report = _diff(tmp_path, {"w": a}, {"w": b}, values=True)
    assert report.items[0]["equal_elements"] == 1 << 40
    assert report.items[0]["max_abs_diff"] == 1
