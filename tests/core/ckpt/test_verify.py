"""verify: what is damaged is named, what is whole passes, and what can't be told isn't claimed."""

import json
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from pttool.core.ckpt.types import Format
from pttool.core.ckpt.verify import only_damaged, verify
from pttool.core.report import Report
from pttool.errors import CheckFailedError, InputError
from tests.core.ckpt.corpus import KINDS

CASES = Path(__file__).parents[2] / "cases" / "ckpt"
STATE = {"w": torch.arange(500.0), "b": torch.arange(3.0)}
HAVE_CHECKSUMS = (Format.TORCH_ZIP, Format.TORCHSCRIPT, Format.EXPORTED, Format.NPZ)
Edit = Callable[[str, bytes], bytes | None]


def _saved(path: Path, value: object = STATE) -> Path:
    torch.save(value, path)
    return path


def _flip(path: Path, content: bytes) -> None:
    """Flip a bit in the middle of where a file holds these bytes."""
    whole = bytearray(path.read_bytes())
    whole[whole.index(content) + len(content) // 2] ^= 0x20
    path.write_bytes(whole)


def _rezipped(path: Path, edit: Edit) -> Path:
    """Write an archive again by zipfile, with true checksums; None drops a record."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            edited = edit(name.partition("/")[2], content)
            if edited is not None:
                archive.writestr(name, edited)
    return path


def _bad(report: Report) -> list[dict[str, Any]]:
    return [dict(item) for item in only_damaged(report).items]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_whole(corpus: dict[str, Path], name: str) -> None:
    report = verify([corpus[name]])
    assert report.failure is None
    assert _bad(report) == []
    assert report.summary["damaged"] == 0
    if KINDS[name].format in HAVE_CHECKSUMS and name != "zip/no_checksums.pt":
        assert report.summary["checksums"] is True


@pytest.mark.parametrize(
    "name",
    ["zip/no_checksums.pt", "state_dict.legacy.pt", "old/tar.pth", "state_dict.p4.pkl",
     "safetensors/state_dict.safetensors", "sharded_safetensors/model.safetensors.index.json"],
)  # fmt: skip
def test_no_checksum_is_no_damage(corpus: dict[str, Path], name: str) -> None:
    report = verify([corpus[name]])
    assert {item["status"] for item in report.items} == {"no checksum"}
    assert report.summary["checksums"] is False
    assert any("stores no checksums" in note for note in report.notes)


def test_checksums_are_those_of_zipfile(corpus: dict[str, Path]) -> None:
    path = corpus["state_dict.pt"]
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename.partition("/")[2]: info.file_size for info in archive.infolist()}
    report = verify([path])
    assert {item["record"]: item["size_bytes"] for item in report.items} == sizes
    assert report.summary["bytes"] == sum(sizes.values())


def test_the_reported_bit_flip() -> None:
    """pytorch/pytorch#126952: torch.load reads w[500] as 372 and says nothing."""
    folder = CASES / "06-bitflip"
    assert verify([folder / "good.pt"]).failure is None
    report = verify([folder / "bitflip.pt"])
    assert [(item["record"], item["tensors"]) for item in _bad(report)] == [("data/0", ["w"])]
    assert isinstance(report.failure, CheckFailedError)


def test_a_flipped_bit_names_record_and_tensors(tmp_path: Path) -> None:
    tied = {**STATE, "tied": STATE["w"][10:20], "sparse": torch.eye(3).to_sparse()}
    path = _saved(tmp_path / "bitflip.pt", tied)
    _flip(path, STATE["w"].numpy().tobytes())
    assert not torch.equal(torch.load(path, weights_only=False)["w"], STATE["w"])  # says nothing
    report = verify([path])
    (item,) = _bad(report)
    assert (item["record"], item["status"], item["tensors"]) == ("data/0", "damaged", ["w", "tied"])
    assert isinstance(report.failure, CheckFailedError)
    said = f"{path}: 1 record is damaged: data/0 (tensors w, tied)"
    assert report.failure.message == said


@pytest.mark.parametrize("deflated", [False, True])
def test_every_flipped_byte_is_found_or_harmless(tmp_path: Path, deflated: bool) -> None:
    source = _saved(tmp_path / "a.pt", {"w": torch.arange(4.0)})
    if deflated:
        with zipfile.ZipFile(source) as archive:
            records = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in records.items():
                archive.writestr(name, content)
    whole = source.read_bytes()
    path = tmp_path / "flipped.pt"
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            failure = verify([path]).failure
        except InputError as error:
            failure = error
        if failure is None:
            assert torch.equal(torch.load(path)["w"], torch.arange(4.0)), at


@pytest.mark.parametrize("size", [0, 1996, 2004])
def test_a_record_of_another_size_than_the_storage(tmp_path: Path, size: int) -> None:
    def resized(name: str, content: bytes) -> bytes:
        return (content + bytes(4))[:size] if name == "data/0" else content

    path = _rezipped(_saved(tmp_path / "a.pt"), resized)
    with pytest.raises(RuntimeError, match="does not match expected size"):
        torch.load(path)
    (item,) = _bad(verify([path]))
    assert (item["record"], item["status"], item["tensors"]) == ("data/0", "wrong size", ["w"])


def test_a_missing_record(tmp_path: Path) -> None:
    path = _saved(tmp_path / "a.pt")
    _rezipped(path, lambda name, content: None if name == "data/1" else content)
    report = verify([path])
    (item,) = _bad(report)
    assert (item["record"], item["status"], item["tensors"]) == ("data/1", "missing", ["b"])
    assert report.failure is not None
    assert "data/1 is missing (tensor b)" in report.failure.message


def test_a_tensor_that_reaches_beyond_its_storage(tmp_path: Path) -> None:
    path = _saved(tmp_path / "a.pt", {"w": torch.zeros(300), "part": torch.zeros(1)})
    # The second argument of each size is a BININT2: 300 is said to be 301.
    _rezipped(path, lambda _, content: content.replace(b"M\x2c\x01\x85", b"M\x2d\x01\x85"))
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.load(path)
    (item,) = _bad(verify([path]))
    assert (item["status"], item["tensors"]) == ("wrong size", ["w"])


def test_a_damaged_pickle_is_damage_not_another_format(tmp_path: Path) -> None:
    path = _saved(tmp_path / "a.pt")
    with zipfile.ZipFile(path) as archive:
        pickle = archive.read("a/data.pkl")
    path.write_bytes(path.read_bytes().replace(pickle, b"\xff" * len(pickle)))
    report = verify([path])
    assert [item["record"] for item in _bad(report)] == ["data.pkl"]
    assert "broken pickle" in report.notes[0]


def test_a_cut_file_is_unreadable(tmp_path: Path) -> None:
    whole, cut = _saved(tmp_path / "a.pt"), tmp_path / "cut.pt"
    cut.write_bytes(whole.read_bytes()[:-30])
    with pytest.raises(InputError, match="cut short"):
        verify([cut])
    report = verify([whole, cut])
    assert report.summary["files"] == 1
    assert isinstance(report.failure, InputError)


def test_several_files(tmp_path: Path) -> None:
    paths = [_saved(tmp_path / name) for name in ("a.pt", "b.pt", "c.pt")]
    for path in paths[:2]:
        _flip(path, STATE["w"].numpy().tobytes())
    report = verify(paths)
    assert [(item["file"], item["record"]) for item in _bad(report)] == [
        (str(path), "data/0") for path in paths[:2]
    ]
    assert report.failure is not None
    assert report.failure.message.startswith("2 of 3 files are damaged: ")


def _shards(folder: Path) -> Path:
    """Write two shards and their index, which places key c in the second."""
    save_file({"a": torch.ones(2)}, folder / "1.safetensors")
    torch.save({"b": torch.arange(100.0)}, folder / "2.bin")
    weight_map = {"a": "1.safetensors", "b": "2.bin"}
    index = folder / "model.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


def test_shards_are_checked_each(tmp_path: Path) -> None:
    index = _shards(tmp_path)
    assert verify([index]).failure is None
    _flip(tmp_path / "2.bin", torch.arange(100.0).numpy().tobytes())
    (tmp_path / "1.safetensors").write_bytes(b"")
    first, second = _bad(verify([index]))
    assert (first["file"], first["tensors"]) == (str(tmp_path / "1.safetensors"), ["a"])
    assert (second["file"], second["record"]) == (str(tmp_path / "2.bin"), "data/0")
    (tmp_path / "1.safetensors").unlink()
    assert _bad(verify([index]))[0]["status"] == "missing"


def test_keys_that_no_shard_holds(tmp_path: Path) -> None:
    index = _shards(tmp_path)
    save_file({"other": torch.ones(2)}, tmp_path / "1.safetensors")
    report = verify([index])
    (item,) = _bad(report)
    assert (item["status"], item["tensors"]) == ("missing", ["a"])
    assert any("the index doesn't name: other" in note for note in report.notes)


@pytest.mark.parametrize("kind", ["distributed", "distributed_files"])
def test_chunks_of_a_distributed_checkpoint(
    corpus: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.state_dict_loader import load

    folder = tmp_path / "dcp"
    shutil.copytree(corpus[kind], folder)
    wanted = {"model": {"fc.weight": torch.zeros(3, 2)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(wanted, storage_reader=FileSystemReader(folder), no_dist=True)
    content = wanted["model"]["fc.weight"].numpy().tobytes()
    (home,) = [file for file in folder.glob("*.distcp") if content in file.read_bytes()]
    _flip(home, content)
    (item,) = _bad(verify([folder]))
    assert item["tensors"] == ["model.fc.weight"]
    assert item["file"] == str(home)
    home.rename(tmp_path / "elsewhere")
    (folder / "other.distcp").touch()
    gone = _bad(verify([folder]))
    assert {item["status"] for item in gone} == {"missing"}
    assert "model.fc.weight" in {name for item in gone for name in item["tensors"]}


def test_a_legacy_storage_that_the_file_does_not_list(tmp_path: Path) -> None:
    path = tmp_path / "legacy.pt"
    torch.save(STATE, path, _use_new_zipfile_serialization=False)
    assert verify([path]).failure is None
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="cut short"):
        verify([path])
