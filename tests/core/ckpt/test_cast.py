"""`cast` rounds as torch does, and touches floating tensors only."""

from pathlib import Path

import pytest
import torch

from pttool.core.ckpt.cast import cast
from pttool.errors import UsageError
from tests.core.ckpt import oracle
from tests.core.ckpt.written import loaded, loaded_safetensors, same

NAMES = {"bf16": "bfloat16", "float16": "float16", "double": "float64", "fp8": "float8_e4m3fn"}
TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2)


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    numbers = torch.randn(500, 700)  # more than one block
    return {
        **{str(dtype).removeprefix("torch."): numbers.to(dtype) for dtype in TYPES},
        "int": torch.arange(5),
        "bool": torch.tensor([True]),
        "complex": torch.randn(3, dtype=torch.complex64),
        "transposed": torch.randn(30, 40).t()[:, ::2],
        "scalar": torch.tensor(1.5),
        "empty": torch.empty(0, 3),
        "special": torch.tensor([float("inf"), float("nan"), -0.0]),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_floating_tensors_are_rounded_as_torch_does(name: str, suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    torch.save({"model": state(), "epoch": 3}, tmp_path / "in.pt")
    report = cast(tmp_path / "in.pt", name, out)
    found = loaded(out) if suffix == "pt" else loaded_safetensors(out)[0]
    dtype: torch.dtype = getattr(torch, NAMES[name])
    wanted = {k: t.to(dtype) if t.is_floating_point() else t for k, t in state().items()}
    assert found.keys() == wanted.keys()
    assert all(same(found[key], wanted[key]) for key in wanted)
    assert report.summary["dropped"] == ["epoch"]
    said = {item["key"]: item["dtype"] for item in report.items}
    assert said == {key: str(t.dtype).removeprefix("torch.") for key, t in wanted.items()}


def test_only_names_that_match_are_cast(corpus: dict[str, Path], tmp_path: Path) -> None:
    cast(corpus["state_dict.pt"], "fp16", tmp_path / "out.pt", filter="bn.*")
    found, original = loaded(tmp_path / "out.pt"), oracle.load(corpus["state_dict.pt"])
    assert isinstance(original, dict)
    for key, tensor in original.items():
        is_cast = key.startswith("bn.") and tensor.is_floating_point()
        assert same(found[key], tensor.half() if is_cast else tensor)


def test_tied_weights_stay_tied_unless_only_one_is_cast(tmp_path: Path) -> None:
    weight = torch.randn(4, 3)
    torch.save({"a": weight, "b": weight, "row": weight[1:]}, tmp_path / "in.pt")
    cast(tmp_path / "in.pt", "bf16", tmp_path / "out.pt")
    found = loaded(tmp_path / "out.pt")
    assert found["a"].data_ptr() == found["b"].data_ptr() == found["row"].data_ptr() - 6
    assert same(found["row"], weight[1:].bfloat16())
    cast(tmp_path / "in.pt", "bf16", tmp_path / "one.pt", filter="b")
    found = loaded(tmp_path / "one.pt")
    assert same(found["a"], weight)
    assert same(found["b"], weight.bfloat16())


@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
@pytest.mark.parametrize(("dtype", "lost"), [("fp16", 2), ("float8_e4m3fn", 3), ("bf16", 0)])
def test_numbers_that_overflow_are_counted(
    dtype: str, lost: int, suffix: str, tmp_path: Path
) -> None:
    numbers = torch.tensor([1e5, -1e5, 500.0, 1.0, float("inf")])
    torch.save({"w": numbers, "small": torch.ones(2)}, tmp_path / "in.pt")
    report = cast(tmp_path / "in.pt", dtype, tmp_path / f"out.{suffix}")
    name = {"fp16": "float16"}.get(dtype, dtype)
    assert report.notes == ((f"w: {lost} elements are beyond {name}",) if lost else ())


def test_the_format_is_the_inputs_unless_the_suffix_says_otherwise(
    corpus: dict[str, Path], tmp_path: Path
) -> None:
    cast(corpus["safetensors/state_dict.safetensors"], "fp16", tmp_path / "out")
    found, metadata = loaded_safetensors(tmp_path / "out")
    assert found["conv.weight"].dtype == torch.float16
    assert metadata == {"format": "pt", "note": "module.日本"}
    cast(corpus["safetensors/state_dict.safetensors"], "fp16", tmp_path / "out.bin")
    assert loaded(tmp_path / "out.bin").keys() == found.keys()


def test_other_types_are_refused(corpus: dict[str, Path], tmp_path: Path) -> None:
    for name in ("int8", "complex64", "float8_e8m0fnu", "bf17"):
        with pytest.raises(UsageError, match=name):
            cast(corpus["state_dict.pt"], name, tmp_path / "out.pt")
