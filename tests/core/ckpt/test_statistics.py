"""statistics_of: what torch says of the same elements, of every type and layout."""

import math
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pttool.core.ckpt.comparing.statistics import Stats, statistics_of
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.decoding import SMALL_FLOATS, decoded
from pttool.core.ckpt.tensors.elements import raw_blocks
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.types import Record, Storage, Tensor
from pttool.errors import InputError
from tests.core.ckpt import oracle
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.corpus_tensors import FLOATING, WHOLE
from tests.core.ckpt.corpus_tensors import SMALL_FLOATS as TORCH_SMALL_FLOATS

NO_CONVERSION = ("float4_e2m1fn_x2", "bits8", "bits16", "bits1x8")


def _of_torch(tensor: torch.Tensor) -> Stats:
    """Count with torch, in float64 or exactly."""
    if tensor.is_complex():
        wide = tensor.resolve_conj().to(torch.complex128).flatten()
        low = high = mean = None
    else:
        small = tensor.dtype.itemsize == 1 and tensor.is_floating_point()
        exact = tensor.float() if small else tensor
        wide = exact.to(torch.float64 if tensor.is_floating_point() else torch.int64).flatten()
        known, finite = wide[~wide.isnan()], wide[wide.isfinite()]
        low, high = (known.min().item(), known.max().item()) if len(known) else (None, None)
        mean = finite.double().mean().item() if len(finite) else math.nan
        mean = mean if math.isfinite(mean) else None
    return Stats(low, high, mean, int(wide.isnan().sum()), int(wide.isinf().sum()))


def _assert_same(ours: Stats, theirs: Stats) -> None:
    if theirs.mean is None:
        assert ours.mean is None
    else:
        assert ours.mean == pytest.approx(theirs.mean, rel=1e-12, abs=1e-300)
    assert (ours.min, ours.max) == (theirs.min, theirs.max)
    assert (ours.nan, ours.inf) == (theirs.nan, theirs.inf)


@pytest.mark.parametrize("name", [name for name in KINDS if name.endswith(".pt")])
def test_what_torch_says_of_every_tensor(corpus: dict[str, Path], name: str) -> None:
    values = {found.path: found for found in oracle.tensors(corpus[name])}
    for tensor in read(corpus[name]).tensors:
        known: Any = values.get(tensor.path)
        if known is None or not isinstance(known.value, torch.Tensor):
            continue
        ours = statistics_of(tensor, name_of(tensor))
        if known.layout == "strided" and known.dtype not in NO_CONVERSION:
            _assert_same(ours, _of_torch(known.value.detach()))
        elif known.layout.startswith("sparse"):
            _assert_same(ours, _of_torch(known.parts[-1].value))
        elif known.layout in ("quantized", "meta") or known.dtype.startswith("bits"):
            assert ours == Stats()


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_every_small_float_is_torchs(dtype: str) -> None:
    ours = decoded(bytes(range(256)), dtype)
    theirs = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype)).float().numpy()
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_half_is_torchs(dtype: str) -> None:
    raw = np.arange(1 << 16, dtype="<u2").tobytes()
    theirs = torch.frombuffer(bytearray(raw), dtype=getattr(torch, dtype)).float().numpy()
    np.testing.assert_array_equal(decoded(raw, dtype), theirs)


def test_pairs_of_4_bit_floats() -> None:
    """The sixteen numbers of the MX specification, table 5.3.3: 0 to 6 and their negatives."""
    positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    raw = bytes(low | high << 4 for low, high in zip(range(0, 16, 2), range(1, 16, 2), strict=True))
    numbers = decoded(raw, "float4_e2m1fn_x2")
    assert numbers is not None
    assert numbers.tolist() == [*positive, *(-number for number in positive)]


@pytest.mark.parametrize("dtype", [*WHOLE, *FLOATING, *TORCH_SMALL_FLOATS[:5]])
def test_wild_elements(tmp_path: Path, dtype: str) -> None:
    torch.manual_seed(1)
    whole = torch.randint(0, 256, (64_000,), dtype=torch.uint8)
    tensor = whole > 127 if dtype == "bool" else whole.view(getattr(torch, dtype))
    torch.save({"w": tensor}, tmp_path / "a.pt")
    (found,) = read(tmp_path / "a.pt").tensors
    _assert_same(statistics_of(found, "w"), _of_torch(tensor))


def test_only_nan_and_infinities(tmp_path: Path) -> None:
    torch.save({"w": torch.tensor([math.nan, math.inf, -math.inf])}, tmp_path / "a.pt")
    (found,) = read(tmp_path / "a.pt").tensors
    assert statistics_of(found, "w") == Stats(-math.inf, math.inf, None, 1, 2)


def test_chunks_of_a_distributed_checkpoint(corpus: dict[str, Path]) -> None:
    found = {name_of(tensor): tensor for tensor in read(corpus["distributed"]).tensors}
    weight = statistics_of(found["model.bn.num_batches_tracked"], "model.bn.num_batches_tracked")
    assert weight == Stats(0, 0, 0.0, 0, 0)


def test_deflated_elements(tmp_path: Path) -> None:
    """What is inflated comes in pieces that end anywhere."""
    array = np.random.default_rng(0).standard_normal(200_001)
    np.savez_compressed(tmp_path / "a.npz", w=array)
    (found,) = read(tmp_path / "a.npz").tensors
    _assert_same(statistics_of(found, "w"), _of_torch(torch.from_numpy(array)))


def test_a_view_that_repeats_its_elements_is_not_read_again(tmp_path: Path) -> None:
    views = {
        "expanded": torch.tensor([1.0, 0.0]).expand(1 << 40, 2),
        "overlapping": torch.ones(1 << 16).as_strided((1 << 15, 1 << 15), (1, 1)),
    }
    torch.save(views, tmp_path / "a.pt")
    expanded, overlapping = read(tmp_path / "a.pt").tensors
    assert statistics_of(expanded, "expanded") == Stats(0.0, 1.0, 0.5, 0, 0)
    assert statistics_of(overlapping, "overlapping") == Stats()


@pytest.mark.parametrize("values", [(-1, 2, 1), (1, -2, 1), (1, 2, -1)])
def test_no_byte_before_a_storage_is_read(tmp_path: Path, values: tuple[int, int, int]) -> None:
    """A container may hold any number: numpy would read what lies before its memory."""
    with pytest.raises(InputError, match="below zero"):
        statistics_of(_claiming(tmp_path / "a", *values), "w")


def test_a_stride_that_is_never_taken_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(np.arange(8, dtype="<f4").tobytes())
    wild = replace(_claiming(tmp_path / "a"), shape=(1, 3), stride=(1 << 62, 2), offset=1)
    assert np.frombuffer(b"".join(raw_blocks(wild, "w")), "<f4").tolist() == [1, 3, 5]


def test_more_elements_than_memory_has_addresses_are_refused(tmp_path: Path) -> None:
    huge = replace(_claiming(tmp_path / "a"), shape=(1 << 40, 1 << 40), stride=(0, 0))
    with pytest.raises(InputError, match="claims to have"):
        next(raw_blocks(huge, "w"))


def _claiming(path: Path, offset: int = 0, size: int = 2, stride: int = 2) -> Tensor:
    path.touch()
    os.truncate(path, 32)
    storage = Storage("0", "cpu", 32, Record("0", path, 0, 32, 32))
    return Tensor(("w",), "float32", (size,), (stride,), offset, storage)


@pytest.mark.parametrize("view", ["contiguous", "transposed", "sliced"])
def test_memory_does_not_grow_with_the_tensor(tmp_path: Path, view: str) -> None:
    whole = torch.arange(8_000_000, dtype=torch.float32).view(2, -1)
    tensor = {"contiguous": whole, "transposed": whole.t(), "sliced": whole[:, ::2]}[view]
    torch.save({"w": tensor}, tmp_path / "a.pt")
    (found,) = read(tmp_path / "a.pt").tensors
    tracemalloc.start()
    try:
        ours = statistics_of(found, "w")
        assert tracemalloc.get_traced_memory()[1] < 12 << 20 < whole.nbytes
    finally:
        tracemalloc.stop()
    _assert_same(ours, _of_torch(tensor))
