"""The weights_only verdict: what torch.load really does, and the names that it allows."""

import collections
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pttool.completion.__main__ import torch_globals as installed_globals
from pttool.core.ckpt.pickles.nodes import Global
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.safety.allowed import TORCH_GLOBALS, is_allowed
from pttool.core.ckpt.safety.weights_only import verdict
from pttool.core.ckpt.types import Format
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.hostile import Runs
from tests.core.ckpt.real_files import REAL_FILES

# Of a fresh process: some names are allowed only once a module is imported.
LOADS = """
import json, sys, warnings, torch
warnings.simplefilter("ignore")
for path in json.load(sys.stdin):
    try:
        torch.load(path, map_location="cpu", weights_only=True)
        print(1)
    except Exception:
        print(0)
"""
NOT_ASKED = {Format.SAFETENSORS, Format.NPZ, Format.NPY, Format.DISTRIBUTED}


def loads(paths: list[Path]) -> list[bool]:
    """Tell of each file whether torch.load(weights_only=True) loads it."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS],
        input=json.dumps([str(path) for path in paths]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line == "1" for line in done.stdout.split()]


def test_the_verdict_is_what_torch_does(corpus: dict[str, Path]) -> None:
    asked = [
        name for name, kind in KINDS.items() if kind.format not in NOT_ASKED | {Format.SHARDED}
    ]
    expected = dict(zip(asked, loads([corpus[name] for name in asked]), strict=True))
    assert {name: verdict(read(corpus[name]))[0] for name in asked} == expected
    assert 50 < sum(expected.values()) < len(asked) - 50


@pytest.mark.parametrize("name", [n for n, kind in KINDS.items() if kind.format in NOT_ASKED])
def test_nothing_is_said_of_what_is_not_unpickled(corpus: dict[str, Path], name: str) -> None:
    assert verdict(read(corpus[name])) == (None, ())


def test_of_shards_it_is_that_of_all(corpus: dict[str, Path]) -> None:
    index = corpus["sharded_torch/pytorch_model.bin.index.json"]
    shards = sorted(index.parent.glob("*.bin"))
    assert loads(shards) == [True, True]
    assert verdict(read(index)) == (True, ())
    pickled = corpus["sharded_safetensors/model.safetensors.index.json"]
    assert verdict(read(pickled)) == (None, ())


@pytest.mark.parametrize("name", REAL_FILES)
def test_real_files(real_file: Callable[[str], Path], name: str) -> None:
    path = real_file(name)
    found, _ = verdict(read(path))
    assert found is None or found == loads([path])[0]


REFUSED: dict[str, tuple[object, list[str]]] = {
    "a name": (Runs(print, ("x",)), ["builtins.print"]),
    "a computed call": (Runs(Runs(torch.Size, ([],)), ()), ["a call of what is no name"]),
    "items": (Runs(torch.Size, ([],), None, iter([1])), ["items for torch.Size"]),
    "keys": (Runs(torch.Size, ([],), None, None, iter([(1, 2)])), ["keys for torch.Size"]),
    "a state": (Runs(torch.Size, ([],), {"a": 1}), ["state for torch.Size"]),
    "keys for a Counter": (collections.Counter("ab"), []),
    "a state for a Counter": (Runs(collections.Counter, (), {"a": 1}), []),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_named(tmp_path: Path, name: str) -> None:
    value, reasons = REFUSED[name]
    torch.save(value, tmp_path / "file.pt")
    assert verdict(read(tmp_path / "file.pt")) == (not reasons, tuple(reasons))
    assert loads([tmp_path / "file.pt"]) == [not reasons]


def test_the_opcodes_are_named(corpus: dict[str, Path]) -> None:
    _, reasons = verdict(read(corpus["no_tensors.p4.pt"]))
    assert reasons == ("opcodes of pickle protocol 4: SHORT_BINUNICODE, MEMOIZE, FRAME",)


def test_the_list_is_that_of_the_installed_torch() -> None:
    written = TORCH_GLOBALS.read_text().split()
    assert written == sorted(written)
    if torch.__version__.startswith("2.14."):
        assert written == sorted(installed_globals()), "run `make generate`"


@pytest.mark.parametrize(
    ("module", "name", "patterns", "expected"),
    [
        ("collections", "OrderedDict", (), True),
        ("__builtin__", "set", (), True),
        ("builtins", "eval", (), False),
        ("mmengine.logging", "HistoryBuffer", (), False),
        ("mmengine.logging", "HistoryBuffer", ("numpy.*", "mmengine.*"), True),
        ("argparse", "Namespace", ("argparse.Namespace",), True),
        ("os", "system", ("os.system", "*"), False),
        ("posix", "system", ("*",), False),
    ],
)
def test_names_and_patterns(
    module: str, name: str, patterns: tuple[str, ...], expected: bool
) -> None:
    assert is_allowed(Global(module, name), patterns) is expected
