"""The corpus and the oracle, tested on what is known of them without pttool."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.oracle import OracleTensor, tensors
from tests.core.ckpt.real_files import REAL_FILES

STATE_DICT = (
    *("conv.weight", "conv.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"),
    *("bn.num_batches_tracked", "fc.weight", "fc.bias"),
)
WITHOUT_TENSORS = {"bare_storage", "no_tensors", "values", "safetensors/no_tensors"}


def paths(found: list[OracleTensor]) -> list[tuple[object, ...]]:
    return [one.path for one in found]


def values(path: Path) -> list[torch.Tensor]:
    return [one.value for one in tensors(path)]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_read_by_its_own_library(corpus: dict[str, Path], name: str) -> None:
    assert bool(tensors(corpus[name])) != (name.partition(".")[0] in WITHOUT_TENSORS)


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("state_dict.")])
def test_a_state_dict_has_the_same_keys_in_every_format(corpus: dict[str, Path], name: str) -> None:
    assert paths(tensors(corpus[name])) == [(key,) for key in STATE_DICT]


@pytest.mark.parametrize("name", ["old/torch_0_3.pth", "old/torch_0_4.pth", "old/tar.pth"])
def test_what_is_written_by_hand_holds_what_torch_writes(
    corpus: dict[str, Path], name: str
) -> None:
    written = values(corpus["data_parallel.pt"])
    for mine, of_torch in zip(values(corpus[name]), written, strict=False):
        assert torch.equal(mine, of_torch)


def test_storage_views_are_parts_of_the_whole(corpus: dict[str, Path]) -> None:
    whole, view, again = values(corpus["old/storage_views.pt"])
    in_tar = values(corpus["old/tar_views.pth"])[1]
    assert whole.flatten().tolist() == [float(number) for number in range(10)]
    assert (view.tolist(), again.tolist()) == ([5, 6], [4, 5, 6])
    assert in_tar.tolist() == [5, 6]


def test_big_endian_numbers_are_read(corpus: dict[str, Path]) -> None:
    weight, _, counter = values(corpus["zip/big_endian.pt"])
    assert weight.abs().max() < 1
    assert counter == 5


def test_a_module_is_walked_through_its_state(corpus: dict[str, Path]) -> None:
    found = paths(tensors(corpus["yolo_like.pt"]))
    state = ("model", "@state")
    assert (*state, "_buffers", "anchors") in found
    assert (*state, "stride") in found
    conv = (*state, "_modules", "backbone", "@state", "_modules", "conv", "@state")
    assert (*conv, "_parameters", "weight") in found


@pytest.mark.parametrize("name", REAL_FILES)
def test_real_files_hold_what_is_said_of_them(real_file: Callable[[str], Path], name: str) -> None:
    assert len(tensors(real_file(name))) == REAL_FILES[name].tensors
