"""Checkpoints in several files: the index against its shards."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pttool.core.ckpt.containers import distributed
from pttool.core.ckpt.containers.safetensors import open_safetensors
from pttool.core.ckpt.containers.sharded import open_sharded
from pttool.core.ckpt.files.journal import Change, Journal, encode, journal_path
from pttool.core.ckpt.integrity.record_status import MISSING, NO_CHECKSUM, status_of
from pttool.core.ckpt.pickles.nodes import Span
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.scan import scan
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.types import Checkpoint, Format
from pttool.core.ckpt.verify import verify
from pttool.errors import InputError

A, B = "model-00001-of-00002", "model-00002-of-00002"
WEIGHTS = {A: {"w": torch.ones(2, 3), "n": torch.ones(4).half()}, B: {"b": torch.ones(5)}}
Save = Callable[[dict[str, torch.Tensor], Path], None]


def _save_safetensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


KINDS: dict[str, Save] = {"safetensors": _save_safetensors, "bin": torch.save}
both_kinds = pytest.mark.parametrize("suffix", KINDS)


def _shards(folder: Path, suffix: str = "safetensors") -> dict[str, str]:
    for name, tensors in WEIGHTS.items():
        KINDS[suffix](tensors, folder / f"{name}.{suffix}")
    return {key: f"{name}.{suffix}" for name, tensors in WEIGHTS.items() for key in tensors}


def _index(folder: Path, weight_map: Any, **metadata: Any) -> Path:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))
    return path


def _message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_sharded(path, read)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value.message


def _keys(checkpoint: Checkpoint) -> list[str]:
    return [".".join(tensor.path) for tensor in checkpoint.tensors]


@both_kinds
def test_the_index_or_its_folder_lists_the_tensors_of_all_shards(
    tmp_path: Path, suffix: str
) -> None:
    path = _index(tmp_path, _shards(tmp_path, suffix), total_size=24 + 8 + 20)
    for given_path in (path, tmp_path):
        checkpoint = open_sharded(given_path, read)
        assert (checkpoint.path, checkpoint.format) == (given_path, Format.SHARDED)
        assert sorted(_keys(checkpoint)) == ["b", "n", "w"]
        assert {tensor.path[0]: tensor.shape for tensor in checkpoint.tensors} == {
            key: tuple(tensor.shape) for shard in WEIGHTS.values() for key, tensor in shard.items()
        }
        assert checkpoint.warnings == ()
        assert checkpoint.facts["total_size"] == "52"
        assert checkpoint.facts["shards"] == "2"
        assert {record.file.name for record in checkpoint.records} == {
            f"{A}.{suffix}", f"{B}.{suffix}",
        }  # fmt: skip


@both_kinds
def test_storages_of_different_files_are_told_apart(tmp_path: Path, suffix: str) -> None:
    path = _index(tmp_path, _shards(tmp_path, suffix))
    storages = {t.path[0]: t.storage for t in open_sharded(path, read).tensors}
    keys = {key: storage.key for key, storage in storages.items() if storage}
    assert len(set(keys.values())) == 3
    assert keys["b"].startswith(f"{B}.{suffix}:")


def test_a_tied_storage_stays_one(tmp_path: Path) -> None:
    weight = torch.ones(4)
    torch.save({"a": weight, "b": weight}, tmp_path / "x.bin")
    path = _index(tmp_path, {"a": "x.bin", "b": "x.bin"}, total_size=16)
    checkpoint = open_sharded(path, read)
    assert checkpoint.tensors[0].storage is checkpoint.tensors[1].storage
    assert checkpoint.warnings == ()  # counted once
    path = _index(tmp_path, {"a": "x.bin", "b": "x.bin"}, total_size=32.0)
    assert open_sharded(path, read).warnings == ()  # or twice


def test_where_index_and_shards_differ_both_are_said(tmp_path: Path) -> None:
    weight_map = _shards(tmp_path)
    del weight_map["w"]
    weight_map |= {"n": f"{B}.safetensors", "gone": f"{A}.safetensors"}
    KINDS["safetensors"]({"b": torch.ones(1)}, tmp_path / "more.safetensors")
    path = _index(tmp_path, {**weight_map, "c": "more.safetensors"}, total_size=1)
    assert set(open_sharded(path, read).warnings) == {
        "2 keys in the index, but in no shard: gone, c",
        "1 key in another shard than the index says: n",
        "1 key in a shard, but not in the index: w",
        "1 key in several shards: b",
        "the index says 1 bytes in total; the tensors take 56",
    }


def test_missing_shards_are_named(tmp_path: Path) -> None:
    weight_map = _shards(tmp_path)
    (tmp_path / f"{B}.safetensors").unlink()
    path = _index(tmp_path, weight_map)
    assert _message(path) == f"{path}: 1 of its 2 shards are missing: {B}.safetensors"


def test_a_shard_that_is_a_pointer_is_named(tmp_path: Path) -> None:
    weight_map = _shards(tmp_path)
    shard = tmp_path / f"{B}.safetensors"
    shard.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert _message(_index(tmp_path, weight_map)).startswith(f"{shard}: is a Git LFS pointer")


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../x.bin", "a/../../x.bin", "..", "a\\..\\x", "C:x", "", "a\nb", "a\0b", 3],
)
def test_shards_outside_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    torch.save({"a": torch.ones(1)}, tmp_path / "x.bin")
    message = _message(_index(tmp_path / "folder", {"a": name}))
    assert "no file in its folder" in message


def test_names_of_shards_that_no_disk_has_are_missing(tmp_path: Path) -> None:
    assert "are missing" in _message(_index(tmp_path, {"a": "x" * 5000}))


def test_an_index_can_not_lead_back_to_itself(tmp_path: Path) -> None:
    path = _index(tmp_path, {"a": "model.safetensors.index.json"})
    assert "no single file" in _message(path)
    (tmp_path / "folder").symlink_to(tmp_path)
    assert "no single file" in _message(_index(tmp_path, {"a": "folder"}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is a damaged index"),
        ("{", "is a damaged index"),
        ("[" * 100_000, "is a damaged index"),
        ('{"weight_map": {"a": "x", "a": "y"}}', "'a' occurs twice"),
        ('{"weight_map": {"a": 1%s}}' % ("0" * 5000), "is a damaged index"),
        ("[]", "without a weight_map"),
        ('{"weight_map": {}}', "without a weight_map"),
        ('{"weight_map": ["x"]}', "without a weight_map"),
        ('{"weight_map": {"a": null}}', "names 'None' for 'a'"),
    ],
)
def test_damaged_indices_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.index.json"
    path.write_text(text)
    assert words in _message(path)


def test_a_folder_needs_one_index(tmp_path: Path) -> None:
    assert "has 0 files *.index.json" in _message(tmp_path)


def test_a_shard_whose_change_was_cut_is_mended_first(tmp_path: Path) -> None:
    path = _index(tmp_path, _shards(tmp_path, "bin"))
    shard = tmp_path / f"{A}.bin"
    whole = shard.read_bytes()
    change = Change(0, whole[:40], b"?" * 40)
    journal_path(shard).write_bytes(encode(Journal(len(whole), (change,))))
    shard.write_bytes(change.new[:20] + whole[20:])
    assert sorted(_keys(open_sharded(path, read))) == ["b", "n", "w"]
    assert shard.read_bytes() == whole
    journal_path(shard).write_bytes(encode(Journal(len(whole), (change,))))
    shard.write_bytes(change.new[:20] + whole[20:])
    assert scan([path]).items[0]["verdict"] == "CLEAN"
    assert shard.read_bytes() == whole


def _distributed(corpus: dict[str, Path], folder: Path, **changes: Any) -> Path:
    """Copy the checkpoint of the corpus, with other places of its chunks."""
    copy = folder / "copy"
    shutil.copytree(corpus["distributed"], copy)
    metadata = pickle.loads((copy / ".metadata").read_bytes())
    for place in metadata.storage_data.values():
        vars(place).update(changes)
    (copy / ".metadata").write_bytes(pickle.dumps(metadata))
    return copy


def test_the_values_in_chunks_are_read(corpus: dict[str, Path]) -> None:
    found = {name_of(value): value.node for value in read(corpus["distributed"]).values}
    assert found["epoch"] == 3
    assert found["optim.param_groups.0.lr"] == 1e-3


def test_a_chunk_that_cant_be_read_is_said(corpus: dict[str, Path], tmp_path: Path) -> None:
    copy = _distributed(corpus, tmp_path)
    (file,) = copy.glob("*.distcp")
    file.write_bytes(file.read_bytes().replace(b"PK\5\6", b"????"))
    warnings = read(copy).warnings
    assert "'epoch' can't be read: the zip in the chunk of 'epoch' is damaged" in warnings


def test_values_beyond_a_limit_are_left(
    corpus: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "MOST_VALUE_BYTES", 2000)
    checkpoint = read(corpus["distributed"])
    assert distributed.LEFT_UNREAD in checkpoint.warnings
    assert isinstance(checkpoint.values[-1].node, Span)


@pytest.mark.parametrize(
    "changes",
    [{"offset": -1}, {"offset": -(1 << 70)}, {"length": -1}, {"length": 1 << 70}, {"offset": 0.5}],
)
def test_places_that_no_file_has_are_none(
    corpus: dict[str, Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    checkpoint = read(_distributed(corpus, tmp_path, **changes))
    parts = [part.storage for tensor in checkpoint.tensors for part in tensor.parts]
    assert {storage.record for storage in parts if storage} == {None}
    verify([checkpoint.path])


def test_names_of_files_that_no_disk_has_are_missing(
    corpus: dict[str, Path], tmp_path: Path
) -> None:
    name = "x" * 300
    checkpoint = read(_distributed(corpus, tmp_path, relative_path=name))
    assert checkpoint.warnings == (f"'{'x' * 100}'... is missing",)
    statuses = {status_of(record).status for record in checkpoint.records}
    assert statuses == {NO_CHECKSUM, MISSING}


@pytest.mark.parametrize("total", [True, "52", None, [], float("inf"), float("nan")])
def test_a_total_that_is_no_number_is_left(tmp_path: Path, total: Any) -> None:
    path = _index(tmp_path, _shards(tmp_path), total_size=total)
    assert open_sharded(path, read).warnings == ()


@settings(
    derandomize=True,
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["weight_map", "metadata", "a"]), inner, max_size=3
                )
            ),
        ).map(lambda document: json.dumps(document).encode()),
    )
)
@example(b'\xef\xbb\xbf{"weight_map": {"a": "."}}')
@example(b'{"weight_map": {"\\ud800": "\\ud800"}}')
def test_any_index_is_read_or_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "x.index.json"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        open_sharded(path, open_safetensors)
