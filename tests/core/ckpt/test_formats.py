"""Recognition: every kind of checkpoint by its bytes, and what is none by its name."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import random
import sqlite3
import struct
import tarfile
import time
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pttool.core.ckpt.containers.legacy import open_legacy
from pttool.core.ckpt.containers.legacy_tar import open_legacy_tar
from pttool.core.ckpt.containers.raw_pickle import open_raw_pickle
from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.formats.tar_directory import read_members
from pttool.core.ckpt.types import Checkpoint, Format
from pttool.errors import InputError
from tests.core.ckpt.corpus import KINDS

CASES = Path(__file__).parents[2] / "cases" / "ckpt"
STATE_DICT = {"weight": torch.zeros(2, 2)}


def _refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        recognise(path)
    error = caught.value
    assert error.message.startswith(f"{path}: ")
    assert error.hint
    assert "\n" not in error.message + error.hint
    return error


def _named(tmp_path: Path, content: bytes) -> InputError:
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    return _refusal(path)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_told_by_its_bytes(
    corpus: dict[str, Path], name: str, tmp_path: Path
) -> None:
    assert recognise(corpus[name]) is KINDS[name].format
    if corpus[name].is_file() and KINDS[name].format is not Format.SHARDED:
        renamed = tmp_path / "anything.txt"
        renamed.symlink_to(corpus[name])
        assert recognise(renamed) is KINDS[name].format


@pytest.mark.parametrize("protocol", range(6))
def test_raw_pickles_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "model.pkl"
    array = np.arange(3.0)
    # A dict in protocol 0 or 1 shows no magic number.
    for value in ({"a": 1}, OrderedDict(a=1), {}, [1, "b"], array, {"w": array}, [array]):
        path.write_bytes(pickle.dumps(value, protocol))
        assert recognise(path) is Format.PICKLE, pickle.dumps(value, protocol)[:20]


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_legacy_files_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "model.pth"
    torch.save(STATE_DICT, path, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    assert recognise(path) is Format.TORCH_LEGACY


def _tar(members: dict[str, bytes], form: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1.5  # a fraction needs a pax header before the member
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_tars_of_torch_are_told_from_others(tmp_path: Path, form: int) -> None:
    path = tmp_path / "model.pth"
    members = {"sys_info": b"1", "pickle": b"x" * 700, "tensors": b"", "storages": b"abc"}
    path.write_bytes(_tar(members, form))
    assert recognise(path) is Format.TORCH_TAR
    found = read_members(path)
    assert {record.name: _bytes(path, record.offset, record.size_bytes) for record in found} == (
        members
    )

    path.write_bytes(_tar({"weights.pt": b"x", "readme": b""}, form))
    error = _refusal(path)
    assert "is a tar archive of 2 files (weights.pt, readme)" in error.message
    assert error.hint == f"unpack it, then give a file in it: tar -xf {path}"
    whole = _tar({"weights.pt": b"x" * 2000}, form)
    path.write_bytes(whole[: whole.index(b"xxx") + 99])
    assert "is a cut tar archive" in _refusal(path).message


def _bytes(path: Path, offset: int, size: int) -> bytes:
    return path.read_bytes()[offset : offset + size]


def test_a_tar_in_the_form_of_before_posix_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.tar"
    content = bytearray(_tar({"pickle": b"", "tensors": b"", "storages": b""}, 0))
    for start in range(0, 3 * 512, 512):
        header = content[start : start + 512]
        header[257:265] = bytes(8)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        content[start : start + 512] = header
    path.write_bytes(content)
    assert recognise(path) is Format.TORCH_TAR


def test_folders(tmp_path: Path) -> None:
    assert "is an empty folder" in _refusal(tmp_path).message
    (tmp_path / "__0_0.distcp").write_bytes(b"")
    assert "without its .metadata" in _refusal(tmp_path).message
    (tmp_path / ".metadata").write_bytes(b"")
    assert recognise(tmp_path) is Format.DISTRIBUTED
    (tmp_path / "__0_0.distcp").unlink()
    assert "no .distcp file" in _refusal(tmp_path).message
    (tmp_path / ".metadata").unlink()
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert recognise(tmp_path) is Format.SHARDED
    (tmp_path / "pytorch_model.bin.index.json").write_text("{}")
    error = _refusal(tmp_path)
    assert "has 2 indices" in error.message
    assert error.hint == f"give one of them: {tmp_path}/model.safetensors.index.json"


def test_a_folder_without_a_checkpoint_lists_what_is_inside(tmp_path: Path) -> None:
    for name in ("config.json", "notes.txt"):
        (tmp_path / name).write_text("x")
    assert "it holds config.json, notes.txt" in str(_refusal(tmp_path).hint)
    (tmp_path / "epoch_3.pth").write_text("x")
    assert _refusal(tmp_path).hint == "give a file in it: epoch_3.pth"


def test_an_unpacked_checkpoint_can_be_packed_again(tmp_path: Path) -> None:
    packed = tmp_path / "model.pt"
    torch.save(STATE_DICT, packed)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    error = _refusal(tmp_path / "model")
    assert error.hint == "pack it again, in the folder above: zip -0 -r model.pt model"


def test_a_rank_of_a_distributed_checkpoint_leads_to_its_folder(tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save(torch.zeros(3), stream)
    torch.save(STATE_DICT, stream)
    (tmp_path / ".metadata").write_bytes(b"\x80\x04N.")
    part = tmp_path / "__0_0.distcp"
    part.write_bytes(stream.getvalue())
    assert _refusal(part).hint == f"give its folder: {tmp_path}"


@pytest.mark.parametrize(
    ("file", "words", "cure"),
    [
        ("05-truncated/empty.pt", "is an empty file", "again"),
        ("05-truncated/zeros.pt", "is all zero bytes (5,000): the disk was full", "room"),
        ("05-truncated/half.pt", "end record is missing", "again"),
        ("05-truncated/tail.pt", "end record is missing", "again"),
        ("14-not-a-checkpoint/lfs.pt", "is a Git LFS pointer", "git lfs pull"),
        ("14-not-a-checkpoint/html.pt", "is an HTML page", "download the file itself"),
        ("14-not-a-checkpoint/gz.pt", "is compressed by gzip", "gunzip -c"),
    ],
)
def test_reported_files_are_said_by_name(file: str, words: str, cure: str) -> None:
    error = _refusal(CASES / file)
    assert words in error.message
    assert cure in str(error.hint)


def _sqlite() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (a)")
    return connection.serialize()


def _arrow(write: Any) -> bytes:
    sink = pa.BufferOutputStream()
    write(pa.table({"a": [1]}), sink)
    return bytes(sink.getvalue())


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 46830571\n"
PAGE = b"\n<!-- x -->\n<!doctype HTML>\n<title>Google Drive\n - Virus scan warning</title>"
S3 = b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Denied</Message></Error>'
HUB = b'{"error":"Repository not found"}'
API = b'{"error": {"code": 403, "message": "quota\\nexceeded"}}'
POWERSHELL = "\ufeffPK\3\4".encode("utf-16-le") + bytes(40)
ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:\xa0\x01\x0a\x10"
IMPOSTORS = {
    "lfs": (LFS, "a Git LFS pointer to a file of 46,830,571 bytes", "git lfs pull"),
    "page": (PAGE, "an HTML page titled 'Google Drive - Virus scan warning'", "log in"),
    "xml": (S3, "an XML text that says 'AccessDenied'", "token"),
    "json": (HUB, "a JSON text that says 'Repository not found'", "token"),
    "nested json": (API, "a JSON text that says 'quota exceeded'", "token"),
    "config": (b'{"hidden_size": 768}', "is JSON without a weight_map", "index.json"),
    "list": (b"[1, 2]", "is JSON without a weight_map", "index.json"),
    "text": (b"Entry not found", "a text that begins 'Entry not found'", "address"),
    "python": (b"# model\nimport torch\n\nx = 1\n", "is Python source code", "program"),
    "powershell": (POWERSHELL, "UTF-16 text, as PowerShell", "-o"),
    "gzip": (gzip.compress(b"x" * 999), "compressed by gzip", "> model-unpacked.pt"),
    "tar.gz": (gzip.compress(_tar({"a": b"b"}, 0)), "compressed by gzip", "tar -xzf"),
    "cut gzip": (b"\x1f\x8b", "compressed by gzip", "gunzip"),
    "bzip2": (bz2.compress(b"x" * 999), "compressed by bzip2", "bunzip2 -c"),
    "xz": (lzma.compress(b"x" * 999), "compressed by xz", "xz -dc"),
    "zstd": (pa.compress(b"x" * 999, "zstd", asbytes=True), "compressed by zstd", "zstd -dc"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "a 7z archive", "7z x"),
    "rar": (b"Rar!\x1a\x07\x01\0", "a RAR archive", "unrar"),
    "gguf": (b"GGUF\3\0\0\0" + bytes(16), "a GGUF model of llama.cpp", "safetensors"),
    "ggml": (b"tjgg\3\0\0\0", "a GGML model", "safetensors"),
    "hdf5": (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file, as Keras writes", "h5py"),
    "onnx": (ONNX, "an ONNX model", "onnx.load"),
    "tflite": (b"\x1c\0\0\0TFL3\x14\0", "a TensorFlow Lite model", "safetensors"),
    "tensorflow": (b"\1" * 40 + bytes.fromhex("57fb808b247547db"), "TensorFlow", "safetensors"),
    "darknet": (struct.pack("<3iq", 0, 2, 5, 32013312), "a Darknet weights file", "safetensors"),
    "pdf": (b"%PDF-1.7\n", "a PDF document", "downloaded"),
    "png": (b"\x89PNG\r\n\x1a\n\0", "a PNG picture", "downloaded"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture", "downloaded"),
    "elf": (b"\x7fELF\2\1\1\0", "a program or library", "meant"),
    "sqlite": (_sqlite(), "an SQLite database", "safetensors"),
    "parquet": (_arrow(pq.write_table), "a Parquet table", "safetensors"),
    "arrow": (_arrow(feather.write_feather), "an Arrow table", "safetensors"),
    "part": (bytes(70_000) + b"x" * 9, "starts with 70,000 zero bytes", "again"),
    "unknown": (b"\xde\xad\xbe\xef\0\1", "it starts with the bytes de ad be ef 00 01", "again"),
}


@pytest.mark.parametrize("name", IMPOSTORS)
def test_what_is_no_checkpoint_is_said_by_name(tmp_path: Path, name: str) -> None:
    content, what, cure = IMPOSTORS[name]
    error = _named(tmp_path, content)
    assert what in error.message
    assert cure in str(error.hint)


@pytest.mark.parametrize(
    "text",
    [
        b"checkpoint\nbest\n(see notes)\n",
        b"(draft)",
        b"]]",
        b"collections\nare\nnice.\n",
        b"(dp.py",
    ],
)
def test_texts_that_begin_as_an_old_pickle_are_texts(tmp_path: Path, text: bytes) -> None:
    assert "is a text that begins" in _named(tmp_path, text).message


@pytest.mark.parametrize("form", ["<html><title>%s</title>", "<?xml?><Message>%s</Message>"])
def test_titles_and_messages_are_looked_for_nearby(tmp_path: Path, form: str) -> None:
    """Where each of ten thousand may begin one, looking for its end takes as many times as long."""
    assert "'xxx" in _named(tmp_path, (form % ("x" * 200)).encode()).message
    assert "xxx" not in _named(tmp_path, (form % ("x" * 2000)).encode()).message


def _zip(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("names", "what", "cure"),
    [
        ((), "is an empty zip", "again"),
        (("a.txt", "b.txt", "d/", "d/c.txt", "e"), "a zip of 4 files (a.txt, b.txt, d/c.txt and 1 ",
         "unzip -l"),
        (("x/model.pth",), "without the data.pkl of torch.save", "unzip {path} x/model.pth"),
        (("config.json", "model.weights.h5"), "is a Keras model", "keras"),
        (("a/.data/extern_modules", "a/m.py"), "is a torch.package archive", "PackageImporter"),
        (("data.pkl", "version"), "packed again", "zip -0 -r"),
        (("up/model/data.pkl", "up/model/version"), "packed again", "zip -0 -r"),
        (("a.npy", "b.txt"), "is a zip of 2 files", "unzip {path} a.npy"),
    ],
)  # fmt: skip
def test_zips_of_something_else(
    tmp_path: Path, names: tuple[str, ...], what: str, cure: str
) -> None:
    error = _named(tmp_path, _zip(*names))
    assert what in error.message
    assert cure.format(path=tmp_path / "model.pt") in str(error.hint)


def test_an_index_of_shards_and_the_safetensors_are_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("\ufeff" + json.dumps({"metadata": {"x": "y" * 100_000}, "weight_map": {}}))
    assert recognise(path) is Format.SHARDED
    path.write_bytes(struct.pack("<Q", 2) + b"{}")
    assert recognise(path) is Format.SAFETENSORS
    path.write_bytes(struct.pack("<Q", 4000) + b'{"a":')  # cut: said when it is opened
    assert recognise(path) is Format.SAFETENSORS


def test_paths_that_lead_to_no_file(tmp_path: Path) -> None:
    assert "does not exist" in _refusal(tmp_path / "none.pt").message
    (tmp_path / "link.pt").symlink_to("none.pt")
    assert "is a link to a file that doesn't exist" in _refusal(tmp_path / "link.pt").message
    (tmp_path / "loop").symlink_to("loop")
    assert _refusal(tmp_path / "loop").hint
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe, not a file" in _refusal(tmp_path / "pipe").message
    assert "is a socket or a device" in _refusal(Path("/dev/null")).message
    assert "name" in _refusal(tmp_path / ("x" * 300)).message
    (tmp_path / "file").write_text("x")
    assert _refusal(tmp_path / "file" / "below").hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.pt"
    path.write_text("x")
    path.chmod(0)
    assert "permission denied" in _refusal(path).message


def test_a_terabyte_of_nothing_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "reserved.pt"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    start = time.perf_counter()
    assert "is all zero bytes (1,099,511,627,776)" in _refusal(path).message
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("read", [open_legacy, open_legacy_tar, open_raw_pickle])
def test_a_file_that_vanishes_or_is_cut_while_it_is_read(
    tmp_path: Path, read: Callable[[Path], Checkpoint]
) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.hint
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is an empty file") as caught:
        read(path)
    assert caught.value.hint


def test_half_of_a_torch_zip_before_zeros_is_a_cut_zip(tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save(STATE_DICT, stream)
    content = stream.getvalue()
    assert "end record is missing" in _named(tmp_path, content[:600] + bytes(9000)).message


@pytest.mark.parametrize(
    "name",
    ["safetensors/state_dict.safetensors", "old/tar.pth", "old/torch_0_4.pth",
     "zip/torch_1_6.pt", "numpy/arrays.npz", "numpy/array.npy"],
)  # fmt: skip
def test_cut_and_mutated_files_are_recognised_or_refused(
    corpus: dict[str, Path], name: str, tmp_path: Path
) -> None:
    content = corpus[name].read_bytes()
    rng = random.Random(4)
    path = tmp_path / "model.pt"
    cuts = {rng.randrange(len(content)) for _ in range(300)} | set(range(100))
    for damaged in [content[:cut] for cut in sorted(cuts)] + _mutants(content, rng, 300):
        _assert_named(path, damaged)


def _mutants(content: bytes, rng: random.Random, count: int) -> list[bytes]:
    mutants = []
    for _ in range(count):
        mutant = bytearray(content)
        for _ in range(rng.randint(1, 8)):
            mutant[rng.randrange(min(len(mutant), rng.choice((32, 600, 1 << 30))))] = rng.randrange(
                256
            )
        mutants.append(bytes(mutant))
    return mutants


def _assert_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    message = ""
    try:
        recognise(path)
    except InputError as error:
        message = error.message
    assert not message or message.startswith(f"{path}: ")
    assert "\n" not in message


@settings(
    derandomize=True,
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.one_of(
        st.binary(max_size=600),
        st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.builds(
            lambda start, rest: start + rest,
            st.sampled_from([content[:16] for content, _, _ in IMPOSTORS.values()]),
            st.binary(max_size=600),
        ),
    )
)
@example(b"\x1f\x8b\x08" + zlib.compress(b"x")[:3])
@example(b"<title></title>")
@example(b"{" + b"[" * 50_000)
@example(b'{"error": "\\ud800"}')
def test_any_bytes_are_recognised_or_refused(tmp_path: Path, content: bytes) -> None:
    _assert_named(tmp_path / "any.pt", content)
