"""Whole pickled objects, containers within containers, and Python's other values."""

import argparse
import collections
import datetime
import enum
import fractions
import pathlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from tests.core.ckpt.corpus_kinds import (
    PICKLE_WAYS,
    TORCH_WAYS,
    ZIP,
    ZIP_AND_LEGACY,
    Theme,
    legacy,
    zipped,
)
from tests.core.ckpt.corpus_missing import Config, Det, Slotted
from tests.core.ckpt.corpus_state_dicts import adamw, parallel, prefixed, small_net

THEME = Theme()
DEEP = 300


class Pair(NamedTuple):
    """A named tuple."""

    first: torch.Tensor
    second: torch.Tensor


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass whose state is a list."""

    weight: torch.Tensor
    name: str = "frozen"


@dataclass
class Open:
    """A dataclass whose state is a dict."""

    weight: torch.Tensor
    extra: dict[str, torch.Tensor] = field(default_factory=dict)


class Mode(enum.Enum):
    """An enumeration."""

    TRAIN = "train"


class Named(dict[str, torch.Tensor]):
    """A subclass of dict with an attribute."""

    title = ""


class Listed(list[torch.Tensor]):
    """A subclass of list."""


@THEME.saved("whole_module", {**TORCH_WAYS, "p2.pkl": PICKLE_WAYS["p2.pkl"]})
def _whole_module() -> object:
    return small_net()


@THEME.saved("whole_parallel", TORCH_WAYS)
def _whole_parallel() -> object:
    return parallel()


@THEME.saved("yolo_like", TORCH_WAYS)
def _yolo_like() -> object:
    return {"model": Det(small_net()).half(), "ema": None, "cfg": Config(), "epoch": 3}


@THEME.saved("unknown_class", TORCH_WAYS)
def _unknown_class() -> object:
    return {"model": prefixed("module."), "cfg": Config(), "cuda": "cuda:0", "slots": Slotted()}


@THEME.saved("shared_modules", ZIP_AND_LEGACY)
def _shared_modules() -> object:
    """A module used twice, and a weight tied to another's."""
    shared, tied = nn.Linear(2, 2), nn.Linear(2, 2)
    tied.weight = shared.weight
    return nn.Sequential(shared, tied, shared)


@THEME.saved("whole_optimizer", ZIP_AND_LEGACY)
def _whole_optimizer() -> object:
    """An optimizer itself: its state has tensors as keys."""
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return {"optimizer": optimizer}


@THEME.saved("objects", {**TORCH_WAYS, "p4.pkl": PICKLE_WAYS["p4.pkl"]})
def _objects() -> object:
    named = Named(weight=torch.ones(2))
    named.title = "module.title"
    return {
        "named_tuple": Pair(torch.ones(1), torch.ones(2)),
        "frozen": Frozen(torch.ones(3)),
        "open": Open(torch.ones(4), {"more": torch.ones(5)}),
        "namespace": argparse.Namespace(mean=torch.ones(6), device="cuda:0"),
        "named": named,
        "listed": Listed([torch.ones(7)]),
        "deque": collections.deque([torch.ones(8), torch.ones(9)], maxlen=3),
        "default": collections.defaultdict(list, {"a": [torch.ones(10)]}),
        "ordered": collections.OrderedDict(a=torch.ones(11)),
        "set": {torch.ones(12)},
        "counter": collections.Counter("aab"),
        "slots": Slotted(),
    }


@THEME.saved("nesting", ZIP_AND_LEGACY)
def _nesting() -> object:
    inner = {"a": (torch.ones(2), [torch.ones(3), {"b": torch.ones(4)}])}
    return [torch.ones(1), inner, (), [], {}, (None, (torch.ones(5),)), inner]


@THEME.saved("odd_keys", ZIP_AND_LEGACY)
def _odd_keys() -> object:
    keys: list[Any] = [0, -1, 2**70, 0.5, True, None, b"bytes", (1, "a"), "", "a.b", "a/b"]
    texts = ["@state", "line\nbreak", "日本", "lone \ud800", "x" * 300, "'quoted\"", "\x1b[31m"]
    return {key: torch.full((1,), float(at)) for at, key in enumerate([*keys, *texts])}


@THEME.saved("object_keys", ZIP_AND_LEGACY)
def _object_keys() -> object:
    return {Mode.TRAIN: torch.ones(1), torch.float16: torch.ones(2), frozenset([1]): torch.ones(3)}


@THEME.saved("cycle", ZIP_AND_LEGACY)
def _cycle() -> object:
    root: dict[str, Any] = {"tensor": torch.ones(2), "list": []}
    root["self"] = root
    root["list"].append(root["list"])
    root["object"] = argparse.Namespace(root=root, weight=torch.ones(1))
    return root


@THEME.saved("deep", ZIP_AND_LEGACY)
def _deep() -> object:
    root: Any = torch.ones(1)
    for at in range(DEEP):
        root = {"x": root} if at % 2 else [root]
    return root


@THEME.saved("no_tensors", {**TORCH_WAYS, **PICKLE_WAYS})
def _no_tensors() -> object:
    return {"epoch": 3, "names": ["a", "b"]}


@THEME.saved("values", {"pt": ZIP, "legacy.pt": legacy(), "p5.pt": zipped(5), **PICKLE_WAYS})
def _values() -> object:
    when = datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    return {
        "set": {1, 2},
        "frozenset": frozenset(["a"]),
        "complex": 1 + 2j,
        "bytes": b"\x00\xff",
        "empty_bytes": b"",
        "bytearray": bytearray(b"\x80x"),
        "bools": (True, False, None, ...),
        "ints": [
            0,
            255,
            256,
            65535,
            65536,
            2**31 - 1,
            2**31,
            -1,
            -(2**31),
            -(2**63),
            2**80,
            -(2**80),
        ],
        "huge": 1 << 3000,
        "floats": [0.0, -0.0, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")],
        "texts": ["", "日本", "lone \ud800", "nul \0", "line\nbreak\\u0041", "x" * 300],
        "counter": collections.Counter("aab"),
        "default": collections.defaultdict(list, a=[1]),
        "when": when,
        "path": pathlib.PurePosixPath("/a/b"),
        "enum": Mode.TRAIN,
        "slice": slice(1, None, 2),
        "range": range(3),
        "fraction": fractions.Fraction(1, 3),
        "class": collections.OrderedDict,
        "function": torch.nn.functional.relu,
        "torch": [torch.float16, torch.strided, torch.device("cuda:1"), torch.Size([1, 2])],
        "memoised": ["module.a", "module.a", ("t",), ("t",)],
    }


@THEME.saved("shared_strings", {**ZIP_AND_LEGACY, "p4.pt": zipped(4), "p5.pt": zipped(5)})
def _shared_strings() -> object:
    """A key that a value is too: to rename the one is to keep the other."""
    name = "module.conv.weight"
    device = "cuda:0"
    first = {name: torch.ones(1), device: torch.ones(2)}
    return {
        "model": first,
        "frozen": [name, device],
        "again": first,
        "optimizer": adamw(small_net()),
    }
