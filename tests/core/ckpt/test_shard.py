"""`shard` and `merge`: files that transformers' rules allow, equal when put together again."""

import errno
import os
from pathlib import Path

import pytest
import torch

from pttool.core.ckpt.merge import merge
from pttool.core.ckpt.shard import shard
from pttool.core.sizes import parse_size
from pttool.errors import InputError, UnavailableError, UsageError
from tests.core.ckpt import oracle
from tests.core.ckpt.written import index_of, loaded, loaded_safetensors, same


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "embedding": torch.randn(10, 10),
        "a": torch.randn(50),
        "b": torch.randn(50).half(),
        "large": torch.randn(1000),
        "c": torch.arange(50),
    }


@pytest.mark.parametrize(
    ("safetensors", "index", "suffix"),
    [
        (True, "model.safetensors.index.json", "safetensors"),
        (False, "pytorch_model.bin.index.json", "bin"),
    ],
)
def test_there_and_back(safetensors: bool, index: str, suffix: str, tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "in.pt")
    folder = tmp_path / "shards"
    report = shard(tmp_path / "in.pt", folder, max_size=650, safetensors=safetensors)
    stem = "model" if safetensors else "pytorch_model"
    names = [f"{stem}-0000{at}-of-00004.{suffix}" for at in range(1, 5)]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, index])
    weight_map = dict(zip(state(), (names[at] for at in (0, 0, 1, 2, 3)), strict=True))
    total = sum(tensor.nbytes for tensor in state().values())
    assert index_of(folder) == {"metadata": {"total_size": total}, "weight_map": weight_map}
    assert report.summary["shards"] == 4
    for name in names:
        path = folder / name
        found = loaded_safetensors(path)[0] if safetensors else loaded(path)
        assert found.keys() == {key for key, shard in weight_map.items() if shard == name}
        assert all(same(found[key], state()[key]) for key in found)
    for source in (folder, folder / index):
        merge(source, tmp_path / "out.pt")
        merge(source, tmp_path / "out.safetensors")
        back = loaded(tmp_path / "out.pt")
        assert back.keys() == state().keys()
        assert all(same(back[key], state()[key]) for key in back)
        again, metadata = loaded_safetensors(tmp_path / "out.safetensors")
        assert metadata == {"format": "pt"}
        assert all(same(again[key], state()[key]) for key in state())


@pytest.mark.parametrize("safetensors", [True, False])
def test_tied_weights_come_back_tied(safetensors: bool, tmp_path: Path) -> None:
    weight = torch.randn(10, 10)
    tied = {"embedding": weight, "a": torch.randn(100), "head": weight}
    torch.save(tied, tmp_path / "in.pt")
    shard(tmp_path / "in.pt", tmp_path / "shards", max_size=500, safetensors=safetensors)
    index = index_of(tmp_path / "shards")
    assert len(set(index["weight_map"].values())) == 2
    assert index["metadata"]["total_size"] == 800
    merge(tmp_path / "shards", tmp_path / "out.pt")
    back = loaded(tmp_path / "out.pt")
    assert back.keys() == tied.keys()
    assert back["head"].data_ptr() == back["embedding"].data_ptr()
    assert all(same(back[key], tied[key]) for key in tied)


def test_shards_that_others_wrote_are_merged(corpus: dict[str, Path], tmp_path: Path) -> None:
    wanted = oracle.load(corpus["state_dict.pt"])
    assert isinstance(wanted, dict)
    for name in ("sharded_torch/pytorch_model.bin", "sharded_safetensors/model.safetensors"):
        merge(corpus[f"{name}.index.json"].parent, tmp_path / "out.pt")
        found = loaded(tmp_path / "out.pt")
        assert found.keys() == wanted.keys()
        assert all(same(found[key], wanted[key]) for key in wanted)


def test_a_folder_appears_complete_or_not_at_all(corpus: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "shards"
    with pytest.raises(InputError):
        shard(corpus["dtypes.pt"], target, max_size=10)  # complex128 is no type of safetensors
    assert list(tmp_path.iterdir()) == []
    target.mkdir()
    shard(corpus["state_dict.pt"], target, max_size=100)
    before = sorted(target.iterdir())
    with pytest.raises(UsageError, match="already exists"):
        shard(corpus["state_dict.pt"], target, max_size=50)
    assert sorted(target.iterdir()) == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path: Path) -> None:
    missing = tmp_path / "no.pt"
    (tmp_path / "file").touch()
    for name in ("file", "n" * 300, "no/shards"):
        with pytest.raises(UsageError, match=name):
            shard(missing, tmp_path / name, max_size=10)


def test_a_folder_is_on_the_disk_when_it_is_done(
    corpus: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files and their names before it has its own name, and then that."""
    synced: list[tuple[int, bool]] = []
    target, fsync = tmp_path / "shards", os.fsync

    def noted(file: int) -> None:
        synced.append((os.fstat(file).st_ino, target.exists()))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    shard(corpus["state_dict.pt"], target, max_size=100)
    files = {(path.stat().st_ino, False) for path in target.iterdir()}
    assert files <= set(synced)
    assert synced[-2:] == [(target.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_a_full_disk_is_said_of_the_folder_asked_for(
    corpus: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnavailableError, match=f"{tmp_path}/shards: No space"):
        shard(corpus["state_dict.pt"], tmp_path / "shards", max_size=100)
    assert list(tmp_path.iterdir()) == []


def test_one_file_is_not_merged(corpus: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not sharded"):
        merge(corpus["state_dict.pt"], tmp_path / "out.pt")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5GB", 5 * 10**9), ("200MB", 2 * 10**8), ("2GiB", 2 << 30), ("1.5 kib", 1536),
        ("700", 700), ("10b", 10), ("3k", 3000), ("1TB", 10**12),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "5XB", "-1GB", "0", "1e9", "5iB", "0.1B", "٣GB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)
