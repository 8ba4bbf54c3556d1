"""Files that mean harm: an error or a verdict, no crash, no hang, and little memory."""

import functools
import io
import itertools
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pttool.core.ckpt.comparing.value_identity import fingerprint
from pttool.core.ckpt.pickles.nodes import List
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.values import in_words, json_value
from pttool.core.ckpt.types import Value
from pttool.core.ckpt.weights.script import script_weights
from pttool.errors import InputError
from tests.core.ckpt.corpus_old import Old, Stored, write_tar
from tests.core.ckpt.fuzzing import watched
from tests.core.ckpt.hostile import named, tensor, torch_zip

MOST_MIB = 256
# `make fuzz` asks for more.
MUTATIONS = int(os.environ.get("PTTOOL_FUZZ", "20000"))
PROCESSES = 2
MILLION = 1_000_000

Attack = Callable[[Path], object]


def fuzzing(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.core.ckpt.fuzzing", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    return [json.loads(line) for line in stdout.splitlines()]


def data_pkl(data: bytes) -> Attack:
    return functools.partial(torch_zip, pickled=data)


def raw(data: bytes) -> Attack:
    return lambda path: path.write_bytes(data)


def deep(start: bytes, around: bytes, end: bytes = b".") -> bytes:
    """Return a pickle of something in a million of these opcodes."""
    return b"\x80\4" + start + around * MILLION + end


def deep_tuple() -> bytes:
    """Return the opcodes of a tuple in a million tuples."""
    return b"N" + b"\x85" * MILLION


def laughs(levels: int) -> bytes:
    """Return the pickle of lists of twice the list before."""
    doubled = b"".join(b"]\x94(h%ch%ce0" % (level, level) for level in range(levels))
    return b"\x80\4]\x940" + doubled + b"h%c." % levels


def long_paths(depth: int, leaves: int) -> bytes:
    """Return the pickle of dicts within dicts, each with many values beside the next."""
    value = b"".join(b"K%cK\1" % (number % 250) for number in range(leaves))
    return b"\x80\2" + (b"}(" + value + b"X\x01\0\0\0a") * depth + b"K\1" + b"u" * depth + b"."


def bomb(path: Path) -> None:
    """A data.pkl of a few kilobytes that inflates to 200 MB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\x80\2" + b"(" * 200_000_000)


def many_bombs(path: Path) -> None:
    """A thousand records that each inflate to 30 MB of pickle."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a/data.pkl", pickle.dumps(1))
        block = b"\x80\4" + b"]0" * 2_000_000
        for number in range(100):
            archive.writestr(f"a/{number}.pkl", block)


def twice(path: Path) -> None:
    """Two records of one name: which one is read is up to the reader."""
    data = torch_zip(path, pickle.dumps({"a": 1}, 2), {"data.pkk": named("os", "system")})
    data.write_bytes(data.read_bytes().replace(b"data.pkk", b"data.pkl"))


def climbing(path: Path) -> None:
    torch_zip(path, pickle.dumps({"a": 1}, 2), {"../../etc/passwd": b"x"})


def many_roots(path: Path) -> None:
    """A folder with a data.pkl for each of many names."""
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(16_000):
            archive.writestr(f"{number}/data.pkl", b"N.")


def loaded_often(path: Path) -> None:
    """A zip of many records that a pickle has loaded a thousand times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(2000):
            archive.writestr(f"{number}.txt", b"")
    content = b"B" + struct.pack("<I", len(buffer.getvalue())) + buffer.getvalue()
    call = b"h\0h\1\x85R0"
    loads = LOADS + b"q\0" + b"0" + content + b"q\x010"
    path.write_bytes(b"\x80\2" + loads + call * 1000 + b"N.")


LOADS = b"ctorch.storage\n_load_from_bytes\n"
SELF = {
    "list": b"\x80\2]q\0h\0a.",
    "dict": b"\x80\2}q\0K\1h\0s.",
    "dict under a name": b"\x80\2}q\0X\1\0\0\0ah\0s.",
    "tuple": b"\x80\2]q\0h\0\x85a.",
    "key": b"\x80\2}q\0h\0K\1s.",
    "state": b"\x80\2ca\nb\n)Rq\0h\0b.",
    "persistent": b"\x80\2]q\0h\0Qa.",
}
LENGTHS = {
    "BINUNICODE8": b"\x8d" + struct.pack("<Q", 1 << 40),
    "BINBYTES8": b"\x8e" + struct.pack("<Q", 1 << 40),
    "BYTEARRAY8": b"\x96" + struct.pack("<Q", 1 << 63),
    "BINUNICODE": b"X" + struct.pack("<I", 0xFFFFFFFF),
    "LONG4": b"\x8b" + struct.pack("<i", 0x7FFFFFFF),
    "BINSTRING": b"T" + struct.pack("<i", -1),
    "FRAME": b"\x95" + struct.pack("<Q", 1 << 63),
}
APPENDS, SETITEMS = b"a" * (MILLION - 1) + b".", b"N" + b"s" * MILLION + b"."
# The words that inspect's reading and scan's verdict must hold.
ATTACKS: dict[str, tuple[Attack, str, str]] = {
    **{f"length of {name}": (data_pkl(b"\x80\4" + data), "broken pickle", "UNKNOWN")
       for name, data in LENGTHS.items()},
    **{f"a {name} in itself": (data_pkl(data), "", "") for name, data in SELF.items()},
    "numel of a terabyte": (data_pkl(tensor(1 << 40, 1 << 40)), "1 tensors", "CLEAN"),
    "numel beyond 64 bits": (data_pkl(tensor(1 << 70, 1 << 70)), "0 tensors", "CLEAN"),
    "a negative numel": (data_pkl(tensor(-1, 1)), "0 tensors", "CLEAN"),
    "a memo index of 2**31": (data_pkl(b"\x80\2]r\xff\xff\xff\x7f."), "0 tensors", "CLEAN"),
    "wild memo indices": (
        data_pkl(b"\x80\2]" + b"".join(b"r" + struct.pack("<I", 7 * n) for n in range(MILLION))),
        "under wild numbers", "UNKNOWN"),
    "a deflated bomb": (bomb, "more than", "UNKNOWN"),
    "a hundred bombs": (many_bombs, "0 tensors", "UNKNOWN"),
    "deep tuples": (data_pkl(deep(b"N", b"\x85")), "nested deeper", "CLEAN"),
    "deep lists": (data_pkl(deep(b"", b"]", APPENDS)), "nested deeper", "CLEAN"),
    "deep dicts": (data_pkl(deep(b"", b"}K\1", SETITEMS)), "nested deeper", "CLEAN"),
    "deep calls": (data_pkl(deep(b")", b"\x85ca\nb\n0")), "nested deeper", "UNKNOWN"),
    "calls of calls": (data_pkl(deep(b"ca\nb\n", b")R")), "", "UNKNOWN"),
    "deep references": (data_pkl(deep(b"N", b"Q")), "0 tensors", "CLEAN"),
    "deep marks": (data_pkl(deep(b"", b"(")), "broken pickle", "UNKNOWN"),
    "twenty million lists": (raw(b"\x80\2" + b"]" * 20_000_000), "more objects", "UNKNOWN"),
    "a billion laughs": (data_pkl(laughs(200)), "more than can be listed", "CLEAN"),
    "long paths": (data_pkl(long_paths(400, 200)), "0 tensors", "CLEAN"),
    "keys that are no keys": (data_pkl(b"\x80\2}(]N}Nu."), "0 tensors", "CLEAN"),
    "an extension": (data_pkl(b"\x80\2\x84\1\0\0\0)R."), "", "UNKNOWN"),
    "INST": (data_pkl(b"(ios\nsystem\n."), "", "DANGEROUS"),
    "a computed call": (data_pkl(b"\x80\2ctorch\nSize\n)R)R."), "", "UNKNOWN"),
    "two of a name": (twice, "2 data.pkl", "DANGEROUS"),
    "a name that climbs": (climbing, "an unsafe name", "UNKNOWN"),
    "an endless line": (raw(b"c" + b"a" * 30_000_000), "", ""),
    "a text without end": (raw(b"(lp0\nV" + b"a" * 110_000_000 + b"\na."), "0 tensors", "CLEAN"),
    "a name without end": (raw(b"(lp0\nc" + b"a" * 110_000_000 + b"\nb\na."), "broken", "UNKNOWN"),
    "a deep tuple as a key": (data_pkl(b"\x80\2}" + deep_tuple() + b"K\1s."), "0 tensors", "CLEAN"),
    "a deep tuple to load": (raw(b"\x80\2" + LOADS + deep_tuple() + b"\x85R."), "", "UNKNOWN"),
    "many roots": (many_roots, "16000 data.pkl", "CLEAN"),
    "a zip that is loaded often": (loaded_often, "0 tensors", "UNKNOWN"),
    "digits without end": (data_pkl(b"I" + b"9" * MILLION + b"\n."), "broken pickle", "UNKNOWN"),
    "numbers without end": (
        raw(b"\x80\2(" + b"J\0\1\1\1" * 8 * MILLION), "more objects", "UNKNOWN"),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came of each attack, all in one process."""
    folder = tmp_path_factory.mktemp("attacks")
    for name, (write, _, _) in ATTACKS.items():
        write(folder / name)
    return {said["name"]: said for said in finished(fuzzing("files", str(folder)))}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_come_to_nothing(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    said = outcomes[name]
    assert ATTACKS[name][1] in said["read"]
    assert ATTACKS[name][2] in said["scan"]
    assert said["peak_mib"] < MOST_MIB


def test_sizes_that_lie_are_seen(tmp_path: Path) -> None:
    """What is there is told apart from what is claimed, without reading either."""
    path = torch_zip(tmp_path / "a.pt", tensor(1000, 1000), {"data/0": bytes(8)})
    (found,) = read(path).tensors
    assert found.shape == (1000,)
    assert found.storage is not None
    assert found.storage.record is not None
    assert (found.storage.size_bytes, found.storage.record.size_bytes) == (4000, 8)
    missing = torch_zip(tmp_path / "b.pt", tensor(1000, 1000))
    (found,) = read(missing).tensors
    assert found.storage is not None
    assert found.storage.record is None


def test_numbers_that_no_array_has_are_refused(corpus: dict[str, Path], tmp_path: Path) -> None:
    """A step below 0 would lead before the first byte of a map of the file."""
    program, out = tmp_path / "program.pt2", corpus["export/program.pt2"]
    with zipfile.ZipFile(out) as source, zipfile.ZipFile(program, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("model_weights_config.json"):
                config = json.loads(data)
                next(iter(config["config"].values()))["tensor_meta"]["strides"][0]["as_int"] = -4
                data = json.dumps(config).encode()
            target.writestr(name, data)
    with pytest.raises(InputError, match="its list of weights is damaged"):
        read(program)


WHOLE = Stored(1, torch.arange(10.0))
NUMBERS_OF_TARS: dict[str, tuple[Old, list[Any]]] = {
    "no view": (Old(WHOLE, (2,), (1,)), []),
    "a step below 0": (Old(WHOLE, (2,), (-(1 << 40),)), []),
    "a size below 0": (Old(WHOLE, (-2,), (1,)), []),
    "an offset below 0": (Old(WHOLE, (2,), (1,), -(1 << 40)), []),
    "a view that is no number": (Old(WHOLE, (2,), (1,)), [(2, 1, [], 1)]),
    "a view that begins below 0": (Old(WHOLE, (2,), (1,)), [(2, 1, -8, 1)]),
    "a view beyond its storage": (Old(WHOLE, (2,), (1,)), [(2, 1, 8, 3)]),
}


@pytest.mark.parametrize("name", NUMBERS_OF_TARS)
def test_numbers_in_tars(tmp_path: Path, name: str) -> None:
    old, views = NUMBERS_OF_TARS[name]
    write_tar(tmp_path / "a.pth", {"a": old}, [old], views)
    if name == "no view":
        assert read(tmp_path / "a.pth").tensors[0].shape == (2,)
    else:
        with pytest.raises(InputError, match="is a damaged tar of torch"):
            read(tmp_path / "a.pth")


def doubled(levels: int) -> List:
    """Return a list that holds a list twice, which holds a list twice, and so on."""
    node = List([1])
    for _ in range(levels):
        node = List([node, node])
    return node


def test_values_that_are_shared_without_end(corpus: dict[str, Path]) -> None:
    checkpoint = read(corpus["values.pt"])
    with watched():
        first, second = (fingerprint(Value((), doubled(levels)), checkpoint) for levels in (50, 51))
    assert first != second


@pytest.mark.parametrize("say", [json_value, in_words])
def test_values_that_are_deep_are_said_in_words(say: Callable[[object], object]) -> None:
    node = functools.reduce(lambda inner, _: List([inner]), range(5000), List([1]))
    assert "..." in str(say(node))


def test_modules_that_are_shared_without_end(tmp_path: Path) -> None:
    """Each module holds the one before twice; none holds a tensor."""
    made = b"c__torch__\nM\n)R"
    level = b"0" + made + b"}(X\1\0\0\0ah\0X\1\0\0\0bh\0ubq\0"
    pickled = b"\x80\2" + made + b"}bq\0" + level * 60 + b"."
    code = b"class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
    path = torch_zip(
        tmp_path / "a.pt", pickled, {"constants.pkl": b"N.", "code/__torch__.py": code}
    )
    with watched(), pytest.raises(InputError, match="holds no weights"):
        script_weights(read(path))


def test_mutations_come_to_nothing(corpus: dict[str, Path]) -> None:
    """Nothing but errors of ours, nothing slow, little memory."""
    folder = next(iter(corpus.values())).parent
    count = str(MUTATIONS // PROCESSES)
    seeds = [str(seed) for seed in range(PROCESSES)]
    processes = [fuzzing("mutations", str(folder), count, seed) for seed in seeds]
    for said in itertools.chain.from_iterable(map(finished, processes)):
        assert said["peak_mib"] < MOST_MIB
        assert said["UNKNOWN"] > said["count"] // 3
        assert said["CLEAN"] > 0
        assert said["DANGEROUS"] > 0


def test_the_mutations_follow_from_their_seed(corpus: dict[str, Path]) -> None:
    folder = next(iter(corpus.values())).parent
    first, second = (fuzzing("mutations", str(folder), "40", "again") for _ in range(2))
    one, two = finished(first)[0], finished(second)[0]
    measured = {"peak_mib": 0, "slowest_s": 0}
    assert {**one, **measured} == {**two, **measured}
