"""Parts are joined into what other libraries read; missing ones are named."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pttool.core.features.merge import merge
from pttool.core.features.ranks import Shard
from pttool.core.features.requests import Sharing
from pttool.core.features.types import Format, Pool
from pttool.errors import InputError, UsageError
from tests.core.features.small import extracted, made, request, tree

SHARDS = [Sharing(Shard(number, 2), processes=1) for number in (0, 1)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with the parts of 9 pictures, of which the fifth can't be read."""
    extracted(request(made(tmp_path, 9, broken=[5])), tmp_path / "out")
    return tmp_path / "out"


def rows(out: Path, layer: str) -> np.ndarray:
    """Return the rows of a layer, by numpy alone."""
    return np.concatenate([np.load(path) for path in sorted((out / layer).iterdir())])


def test_npy_is_opened_without_being_read(out: Path) -> None:
    report = merge(out)
    conv = np.load(out / "conv.npy", mmap_mode="r")
    assert isinstance(conv, np.memmap)
    assert np.array_equal(conv, rows(out, "conv"))
    assert [item["path"] for item in report.items] == ["conv.npy", "head.npy"]
    assert report.summary["failed"] == 1
    assert not list(out.glob(".*"))


def test_npz_has_the_layers_and_the_ids(out: Path) -> None:
    merge(out, Format.NPZ)
    with np.load(out / "features.npz") as archive:
        assert set(archive) == {"conv", "head", "ids"}
        assert np.array_equal(archive["conv"], rows(out, "conv"))
        assert list(archive["ids"]) == [f"{n}.png" for n in range(9) if n != 5]


def test_safetensors_are_read_by_their_library(out: Path) -> None:
    merge(out, Format.SAFETENSORS)
    found = load_file(out / "features.safetensors")
    assert set(found) == {"conv", "head"}
    for layer, array in found.items():
        assert np.array_equal(array, rows(out, layer))


def test_parquet_has_a_row_for_each_picture(out: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    merge(out, Format.PARQUET)
    table = parquet.read_table(out / "features.parquet")
    assert table.column("id").to_pylist() == (out / "ids.txt").read_text().splitlines()
    conv = np.array(table.column("conv").to_pylist(), np.float32)
    assert np.array_equal(conv.reshape(8, 4, 14, 14), rows(out, "conv"))
    assert table.schema.field("conv").metadata == {b"shape": b"[4, 14, 14]"}


def test_the_same_is_joined_to_the_same_bytes(out: Path) -> None:
    for format in Format:
        merge(out, format)
    before = tree(out)
    for format in Format:
        merge(out, format)
    assert tree(out) == before


def test_shards_are_joined_once_all_are_there(tmp_path: Path) -> None:
    asked = request(made(tmp_path, 14, broken=[1]))
    first = extracted(asked, tmp_path / "out", SHARDS[0], joined=Format.NPY)
    assert first.summary["parts"] == 2
    assert any("2 of 4 parts are left to other shards" in note for note in first.notes)
    assert not (tmp_path / "out" / "ids.txt").exists()
    with pytest.raises(InputError, match="2 of 4 parts are missing: 1, 3"):
        merge(tmp_path / "out")
    extracted(asked, tmp_path / "out", SHARDS[1], joined=Format.NPY)
    extracted(asked, tmp_path / "alone", joined=Format.NPY)
    assert tree(tmp_path / "out") == tree(tmp_path / "alone")


def test_overwriting_is_refused_to_a_shard(tmp_path: Path) -> None:
    made(tmp_path, 5)
    extracted(request(tmp_path), tmp_path / "out")
    with pytest.raises(UsageError, match="may have new parts of other shards"):
        extracted(request(tmp_path, pool=Pool.GAP), tmp_path / "out", SHARDS[0], overwrite=True)


def test_a_folder_without_features_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no features"):
        merge(tmp_path)
