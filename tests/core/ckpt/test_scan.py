"""Scan: what is clean, what nobody vouches for, and what runs code, told without running it."""

import collections
import errno
import functools
import io
import json
import os
import pathlib
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pttool.core.ckpt.safety.audits import Findings
from pttool.core.ckpt.safety.searching import Budget, Search
from pttool.core.ckpt.scan import scan
from pttool.core.ckpt.types import Format, Record
from pttool.errors import CheckFailedError, InputError, UnavailableError
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.hostile import Runs, named, torch_zip

WEIGHTS = {"weight": torch.ones(2)}
RUNS_CODE = named("os", "system", b"\x8c\2ls\x85")
CLEAN, UNKNOWN, DANGEROUS = "CLEAN", "UNKNOWN", "DANGEROUS"


def verdict(path: Path, **options: Any) -> tuple[str, str]:
    """Return the verdict on a file, and the reasons in one text."""
    (item,) = scan([path], **options).items
    return item["verdict"], "; ".join(item["reasons"])


def saved(path: Path, value: object, **options: Any) -> Path:
    torch.save(value, path, **options)
    return path


def loads_weights_only(path: Path) -> bool:
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", KINDS)
def test_the_corpus_holds_nothing_dangerous(corpus: dict[str, Path], name: str) -> None:
    found, reasons = verdict(corpus[name])
    assert found in (CLEAN, UNKNOWN), reasons
    assert (found == CLEAN) == (not reasons)
    if KINDS[name].format in (Format.TORCH_ZIP, Format.TORCH_LEGACY) and name != "jagged.pt":
        assert found == CLEAN or not loads_weights_only(corpus[name]), reasons
    if KINDS[name].format in (Format.SAFETENSORS, Format.NPY, Format.NPZ):
        assert found == CLEAN


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("script/traced.pt", "contains code"),
        ("export/program.pt2", "contains a program"),
        ("training.pt", "nobody vouches for argparse.Namespace"),
        ("yolo_like.pt", "gone_pkg.models.Det"),
        ("distributed", "torch.distributed.checkpoint.metadata.Metadata"),
        ("state_dict.p2.pkl", "torch.storage._load_from_bytes"),
    ],
)
def test_why_it_is_unknown(corpus: dict[str, Path], name: str, word: str) -> None:
    found, reasons = verdict(corpus[name])
    assert found == UNKNOWN
    assert word in reasons


def test_what_is_vouched_for_is_clean(corpus: dict[str, Path]) -> None:
    allow = ["argparse.*", "numpy.*"]
    assert verdict(corpus["training.pt"], allow=allow)[0] == CLEAN
    loads = ["torch.storage._load_from_bytes"]
    assert verdict(corpus["state_dict.p2.pkl"], allow=loads)[0] == CLEAN


def test_no_wildcard_vouches_for_what_is_dangerous(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pt", {"act": functools.partial(collections.OrderedDict)})
    assert verdict(path, allow=["*"])[0] == DANGEROUS
    assert verdict(path, allow=["functools.partial", "builtins.dict"])[0] == CLEAN
    system = saved(tmp_path / "b.pt", Runs(os.system, ("ls",)))
    assert verdict(system, allow=["posix.system", "os.system"])[0] == DANGEROUS


CALLS: dict[str, object] = {
    "os.system": Runs(os.system, ("ls",)),
    "subprocess": Runs(subprocess.Popen, (["ls"],)),
    "eval": Runs(eval, ("1",)),
    "exec": Runs(exec, ("1",)),
    "getattr": Runs(getattr, ("", "join")),
    "open": Runs(open, ("/etc/passwd",)),
    "pickle.loads": Runs(pickle.loads, (pickle.dumps(1),)),
    "torch.load": Runs(torch.load, ("other.pt",)),
    "numpy.load": Runs(np.load, ("other.npy",)),
    "partial": Runs(functools.partial, (print, 1)),
    "a method of Path": Runs(pathlib.PosixPath.write_text, (pathlib.PosixPath("x"), "y")),
    "in a state": Runs(collections.OrderedDict, (), {"a": Runs(os.system, ("ls",))}),
    "as a key": {Runs(os.system, ("ls",)): 1},
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("protocol", [2, 4])
def test_what_runs_code_is_dangerous(tmp_path: Path, name: str, protocol: int) -> None:
    value = {**WEIGHTS, "more": CALLS[name]}
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        path = saved(tmp_path / "a.pt", value, pickle_protocol=protocol, **options)
        assert verdict(path)[0] == DANGEROUS
    raw = tmp_path / "a.pkl"
    raw.write_bytes(pickle.dumps(CALLS[name], protocol))
    assert verdict(raw)[0] == DANGEROUS


NAMES = {
    ("builtins", "eval"): DANGEROUS,
    ("__builtin__", "eval"): DANGEROUS,
    ("__builtin__", "apply"): DANGEROUS,
    ("commands", "getoutput"): DANGEROUS,
    ("torch", "hub.load"): DANGEROUS,
    ("torch.serialization", "os"): DANGEROUS,
    ("torch.serialization", "os.system"): DANGEROUS,
    ("os.path", "os.system"): DANGEROUS,
    ("collections", "OrderedDict.__init__.__globals__"): DANGEROUS,
    ("collections", "abc.sys.modules"): DANGEROUS,
    ("torch.utils.cpp_extension", "load_inline"): DANGEROUS,
    ("numpy.testing._private.utils", "runstring"): DANGEROUS,
    ("multiprocessing.util", "spawnv_passfds"): DANGEROUS,
    ("operator", "attrgetter"): DANGEROUS,
    ("code", "InteractiveInterpreter"): DANGEROUS,
    ("asyncio", "create_subprocess_shell"): DANGEROUS,
    ("code.models", "Net"): UNKNOWN,
    ("test", "Net"): UNKNOWN,
    ("models.common", "Outer.Inner"): UNKNOWN,
    ("collections", "OrderedDict"): CLEAN,
    ("__builtin__", "set"): CLEAN,
}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_names(tmp_path: Path, module: str, name: str) -> None:
    path = torch_zip(tmp_path / "a.pt", named(module, name))
    assert verdict(path)[0] == NAMES[module, name]


SAFE = pickle.dumps({"a": [1]}, 2)
PICKLES = {
    "broken after the call": (RUNS_CODE[:-1] + b"\xff", DANGEROUS, "os.system runs commands"),
    "broken": (SAFE[:-3], UNKNOWN, "broken pickle"),
    "another pickle behind": (SAFE + SAFE, UNKNOWN, "bytes follow the pickle's end"),
    "a dangerous one behind": (SAFE + RUNS_CODE, DANGEROUS, "os.system runs commands"),
    "something behind": (SAFE + b"\0" * 9, UNKNOWN, "9 bytes follow"),
    "a call that is dropped": (b"\x80\2" + RUNS_CODE[2:-1] + b"0N.", DANGEROUS, "os.system"),
    "a computed call": (b"\x80\2ctorch\nSize\n)R)R.", UNKNOWN, "a call of what no name stands for"),
    "a computed call, dropped": (b"\x80\2ctorch\nSize\n)R)R0N.", UNKNOWN, "what no name"),
    "an extension": (b"\x80\2\x82\x01.", UNKNOWN, "opcode EXT"),
    "INST": (b"(icollections\nOrderedDict\n.", UNKNOWN, "opcode INST"),
    "OBJ": (b"(ccollections\nOrderedDict\no.", UNKNOWN, "opcode OBJ"),
    "a name in the memo": (b"\x80\4\x8c\2os\x94\x8c\6system\x94h\0h\1\x930000N.", DANGEROUS, "os."),
    "a name by many dots": (named("a", "b." * 99 + "os"), DANGEROUS, "reaches"),
    "bytes that nobody loads": (pickle.dumps({"a": RUNS_CODE}, 4), CLEAN, ""),
}


@pytest.mark.parametrize("name", PICKLES)
def test_pickles(tmp_path: Path, name: str) -> None:
    data, expected, word = PICKLES[name]
    found, reasons = verdict(torch_zip(tmp_path / "a.pt", data))
    assert found == expected, reasons
    assert word in reasons


def nested(value: object, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


EVIL = {"a": torch.ones(1), "b": Runs(os.system, ("ls",))}
OLD = {"_use_new_zipfile_serialization": False}
LOADED: dict[str, tuple[bytes, str]] = {
    "a clean file": (nested(WEIGHTS, **OLD), UNKNOWN),
    "an evil file": (nested(EVIL, **OLD), DANGEROUS),
    "an evil zip": (nested(EVIL), DANGEROUS),
    "an evil file in a clean one": (
        nested(Runs(torch.storage._load_from_bytes, (nested(EVIL),)), **OLD),
        DANGEROUS,
    ),
    "no file": (b"?" * 40, UNKNOWN),
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", LOADED)
def test_bytes_that_are_loaded_are_walked(tmp_path: Path, name: str, protocol: int) -> None:
    data, expected = LOADED[name]
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(Runs(torch.storage._load_from_bytes, (data,)), protocol))
    assert verdict(path)[0] == expected
    if name == "no file":
        assert verdict(path, allow=["torch.*"])[0] == UNKNOWN


def zipped(records: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def object_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([EVIL], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def behind(start: bytes, records: dict[str, bytes]) -> bytes:
    """Return a zip behind other bytes, whose offsets count from their start."""
    buffer = io.BytesIO(start)
    with zipfile.ZipFile(buffer, "a") as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    return buffer.getvalue()


DEEP = functools.reduce(lambda data, _: zipped({"model.pt": data}), range(9), nested(WEIGHTS))
ARCHIVES: dict[str, tuple[bytes, str]] = {
    "a pickle beside": (zipped({"a/data.pkl": SAFE, "a/other.pkl": RUNS_CODE}), DANGEROUS),
    "a pickle of no name beside": (zipped({"a/data.pkl": SAFE, "a/other": RUNS_CODE}), DANGEROUS),
    "a pickle as a storage": (zipped({"a/data.pkl": SAFE, "a/data/0": RUNS_CODE}), DANGEROUS),
    "Python code beside": (zipped({"a/data.pkl": SAFE, "a/code.py": b"1"}), UNKNOWN),
    "a broken pickle in capitals": (zipped({"a/data.pkl": SAFE, "a/DATA.PKL": b"(l"}), UNKNOWN),
    "a deflated one": (
        zipped({"a/data.pkl": SAFE, "a/b": RUNS_CODE}, zipfile.ZIP_DEFLATED),
        DANGEROUS,
    ),
    "a file beside": (zipped({"a/data.pkl": SAFE, "a/model.pt": nested(EVIL)}), DANGEROUS),
    "no zip of torch": (zipped({"model.pkl": RUNS_CODE, "b.txt": b"b"}), DANGEROUS),
    "a zip of a clean file": (zipped({"model.pt": nested(WEIGHTS)}), CLEAN),
    "a zip of an evil file": (zipped({"x/model.pt": nested(EVIL)}), DANGEROUS),
    "a zip in a zip in a zip": (DEEP, UNKNOWN),
    "an array of objects": (object_array(), DANGEROUS),
    "an archive of such": (zipped({"a.npy": object_array()}), DANGEROUS),
    "a deflated archive of such": (
        zipped({"a.npy": object_array()}, zipfile.ZIP_DEFLATED),
        DANGEROUS,
    ),
    "a pickle, then a zip": (SAFE + nested(WEIGHTS), UNKNOWN),
    "an evil zip behind a pickle": (behind(SAFE, {"a/data.pkl": RUNS_CODE}), DANGEROUS),
    "an evil zip behind an old file": (
        behind(nested(WEIGHTS, **OLD), {"a/data.pkl": RUNS_CODE}),
        DANGEROUS,
    ),
    "an evil pickle, then a zip": (RUNS_CODE + nested(WEIGHTS), DANGEROUS),
    "bytes before the zip": (behind(b"PK\3\4" + b"x" * 60, {"a/data.pkl": SAFE}), UNKNOWN),
    "bytes behind the zip": (nested(WEIGHTS) + b"more", UNKNOWN),
    "a text that looks like a name": (zipped({"a/data.pkl": SAFE, "a/b": b"cat\ndog\n"}), CLEAN),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(tmp_path: Path, name: str) -> None:
    data, expected = ARCHIVES[name]
    (tmp_path / "a.pt").write_bytes(data)
    found, reasons = verdict(tmp_path / "a.pt")
    assert found == expected, reasons
    assert "tmp" not in reasons


def edited(change: Callable[[bytearray, int, int], None]) -> bytes:
    """Return a torch zip, changed at its first local and central header."""
    data = bytearray(nested(WEIGHTS))
    change(data, data.index(b"PK\3\4"), data.index(b"PK\1\2"))
    return bytes(data)


def _flag(data: bytearray, local: int, central: int) -> None:
    data[local + 6] |= 1
    data[central + 8] |= 1


def _local_name(data: bytearray, local: int, central: int) -> None:
    data[local + 30] ^= 1


def _unsafe(data: bytearray, local: int, central: int) -> None:
    data[local + 30 : local + 33] = data[central + 46 : central + 49] = b"../"


EDITED = {
    "flagged as encrypted": _flag,
    "the local header has another name": _local_name,
    "an unsafe name": _unsafe,
}


@pytest.mark.parametrize("word", EDITED)
def test_an_archive_that_says_two_things_is_not_clean(tmp_path: Path, word: str) -> None:
    (tmp_path / "a.pt").write_bytes(edited(EDITED[word]))
    found, reasons = verdict(tmp_path / "a.pt")
    assert found == UNKNOWN
    assert word in reasons


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(nested(WEIGHTS))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(archive.namelist()[0], SAFE)
    found, reasons = verdict(path)
    assert found == UNKNOWN
    assert "more than one record of this name" in reasons


def test_a_sharded_checkpoint_is_judged_by_its_shards(tmp_path: Path) -> None:
    saved(tmp_path / "one.bin", WEIGHTS)
    saved(tmp_path / "two.bin", EVIL)
    index = tmp_path / "model.bin.index.json"
    index.write_text('{"weight_map": {"weight": "one.bin", "b": "two.bin"}}')
    assert verdict(index)[0] == DANGEROUS
    assert verdict(tmp_path)[0] == DANGEROUS


def shards(folder: Path, **named: str) -> Path:
    """Write an index of these shards; {a: "one.bin"} says where a is."""
    index = folder / "model.bin.index.json"
    index.write_text(json.dumps({"weight_map": named}))
    return index


def test_a_shard_that_cant_be_read_hides_no_other(tmp_path: Path) -> None:
    saved(tmp_path / "evil.bin", EVIL)
    (tmp_path / "page.bin").write_text("<!DOCTYPE html><html></html>")
    found, reasons = verdict(shards(tmp_path, a="gone.bin", b="page.bin", c="evil.bin"))
    assert found == DANGEROUS
    assert "does not exist (in 'gone.bin')" in reasons
    assert "is an HTML page, not a checkpoint (in 'page.bin')" in reasons


def test_shards_are_judged_as_their_kind(corpus: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "inner.bin").write_text('{"weight_map": {"b": "gone.bin"}}')
    found, reasons = verdict(shards(tmp_path, a="inner.bin"))
    assert (found, "'inner.bin' is a checkpoint of several files" in reasons) == (UNKNOWN, True)
    (tmp_path / "inner.bin").write_bytes(corpus["export/program.pt2"].read_bytes())
    assert "contains a program of torch.export" in verdict(tmp_path)[1]


def test_the_chunks_of_a_distributed_one_are_walked(
    corpus: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "distributed"
    folder.mkdir()
    for file in corpus["distributed"].iterdir():
        data = file.read_bytes()
        # A name of the same length: chunks are found by their offsets.
        (folder / file.name).write_bytes(
            data.replace(b"ctorch\nFloatStorage", b"cposix\nFloatStorage")
        )
    assert verdict(folder)[0] == DANGEROUS


def safetensors_and_pickle(evil: bytes) -> bytes:
    """Return a file of safetensors that is a pickle too, which skips the header text by text.

    Its length reads as X, a text of `count` bytes; from its end on U's of up to 126 bytes lead to
    the first tensor, which is the rest of the pickle.
    """
    count, prefix = 40, b'{"__metadata__":{"x":"'
    length = ord("X") + (count << 8)
    sizes = f"[{len(evil)}]", f"[0,{len(evil)}]"
    last = b'"},"w":{"dtype":"U8","shape":%b,"data_offsets":%b}}' % tuple(map(str.encode, sizes))
    header = prefix + b"~" * (5 + count - 8 - len(prefix))
    while length - len(header) > 256:
        header += b"U~" + b"~" * 126
    half = (length - len(header)) // 2
    header += b"U" + bytes([half - 2]) + b"~" * (half - 2)
    rest = length - len(header) - 2
    header += b"U" + bytes([rest]) + b"~" * (rest - len(last)) + last
    return length.to_bytes(8, "little") + header + evil


def test_a_file_of_two_kinds(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_and_pickle(b"cposix\ngetpid\n)R."))
    assert pickle.loads(path.read_bytes()) == os.getpid()
    assert len(torch.load(path)) == 1
    found, reasons = verdict(path)
    assert found == DANGEROUS
    assert "posix.getpid runs commands" in reasons


def loading(path: Path, content: bytes) -> Record:
    """Write a pickle that has these bytes loaded."""
    path.write_bytes(pickle.dumps(Runs(torch.storage._load_from_bytes, (content,)), 4))
    return Record("", path, 0, path.stat().st_size, path.stat().st_size)


def test_a_large_zip_that_is_loaded_is_not_copied(tmp_path: Path) -> None:
    search = Search(Findings(), Budget(nested_bytes=1000))
    search.record(loading(tmp_path / "a.pkl", nested(WEIGHTS)), "the file", expected=1)
    assert any("a zip too large to look into" in doubt for doubt in search.findings.doubts)


def test_without_room_for_a_copy_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    loading(tmp_path / "a.pkl", nested(WEIGHTS))
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    with pytest.raises(UnavailableError, match="No space left on device") as caught:
        scan([tmp_path / "a.pkl"])
    assert "TMPDIR" in str(caught.value.hint)


def test_the_report(tmp_path: Path) -> None:
    clean, evil = saved(tmp_path / "clean.pt", WEIGHTS), saved(tmp_path / "evil.pt", EVIL)
    unknown = saved(tmp_path / "unknown.pt", {"path": pathlib.PosixPath("/data")})
    report = scan([clean, unknown, evil])
    assert [item["verdict"] for item in report.items] == [CLEAN, UNKNOWN, DANGEROUS]
    assert report.items[0]["globals"] == [
        *("collections.OrderedDict", "torch.FloatStorage", "torch._utils._rebuild_tensor_v2")
    ]
    assert report.summary == {"clean": 1, "unknown": 1, "dangerous": 1, "files": 3}
    assert [report.total(column) for column in report.footer] == [1, 1, 1]
    assert isinstance(report.failure, CheckFailedError)
    assert scan([clean]).failure is None
    assert isinstance(scan([unknown]).failure, CheckFailedError)
    assert scan([unknown], fail_on="dangerous").failure is None
    assert isinstance(scan([unknown, evil], fail_on="dangerous").failure, CheckFailedError)


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    page, clean = tmp_path / "page.pt", saved(tmp_path / "clean.pt", WEIGHTS)
    page.write_text("<!DOCTYPE html><html></html>")
    with pytest.raises(InputError, match="HTML"):
        scan([page])
    with pytest.raises(InputError, match="File name too long"):
        scan([Path("x" * 300)])
    report = scan([page, clean])
    assert [item["verdict"] for item in report.items] == [CLEAN]
    assert isinstance(report.failure, InputError)
    evil = saved(tmp_path / "evil.pt", EVIL)
    both = scan([page, evil])
    assert isinstance(both.failure, CheckFailedError)
    assert any("HTML" in note for note in both.notes)
