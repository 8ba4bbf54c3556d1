"""The walker against pickle itself: what it says a pickle would build is what pickle builds."""

import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Set, Span
from pttool.core.ckpt.pickles.opcodes import HANDLERS, unknown
from pttool.core.ckpt.pickles.walker import Walker
from pttool.core.ckpt.reading import read
from pttool.errors import InputError
from tests.core.ckpt.corpus_missing import Config, missing_package

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 2100), 1 << 2100)
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=300)
    | st.binary(max_size=40)
)
KEYS = st.integers() | st.text(st.characters(), max_size=9) | st.tuples(st.integers())
OBJECTS = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4).map(OrderedDict)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
        | inner.map(lambda value: [value, value])
    ),
    max_leaves=12,
)


def walk(data: bytes) -> Node:
    return Walker(data, 0, "file").walk()


def rebuilt(node: Node, data: bytes) -> Any:
    """Make the plain object that a node stands for."""
    match node:
        case Dict():
            return {rebuilt(key, data): rebuilt(value, data) for key, value in node.pairs}
        case List():
            return [rebuilt(item, data) for item in node.items]
        case Set():
            return {rebuilt(item, data) for item in node.items}
        case tuple():
            return tuple(rebuilt(item, data) for item in node)
        case Span():
            return from_span(node, data)
        case Call():
            assert node.path in ("builtins.bytes", "__builtin__.bytes", "_codecs.encode")
            return encoded(node, data)
        case _:
            return node


def from_span(span: Span, data: bytes) -> Any:
    """Read what is left where it lies: a long text, long bytes, or an absurdly long number."""
    raw = data[span.start : span.stop]
    if span.is_text:
        return raw.decode("utf-8", "surrogatepass")
    return raw if len(raw) <= 40 else int.from_bytes(raw, "little", signed=True)


def encoded(call: Call, data: bytes) -> bytes:
    """Make the bytes that protocols below 3 write as calls."""
    if not call.args:
        return b""
    text, encoding = (rebuilt(part, data) for part in call.args)
    return bytes(text.encode(encoding))


@given(OBJECTS, st.integers(0, 5))
@settings(derandomize=True, max_examples=1000, deadline=None)
def test_the_nodes_are_the_object(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert repr(rebuilt(walk(data), data)) == repr(plain(value))


def plain(value: Any) -> Any:
    """Make dicts of OrderedDicts and sets of frozensets, as nodes make no difference."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return {plain(item) for item in value}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value


@given(OBJECTS, st.integers(0, 5))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_it_ends_where_pickle_ends(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    walker = Walker(b"ab" + data + b"behind", 2, "file")
    walker.walk()
    assert walker.position == 2 + len(data)
    assert walker.opcodes == sum(1 for _ in pickletools.genops(data))


@pytest.mark.parametrize("protocol", range(6))
def test_objects_are_calls(protocol: int) -> None:
    with missing_package():
        data = pickle.dumps([Config(), Config()], protocol)
    first, second = walk(data).items
    for made in (first, second):
        assert made.function == Global("gone_pkg.models", "Config")
        assert made.state.get("lr") == 1e-3
    assert first is not second


def test_what_is_shared_stays_shared() -> None:
    inner: list[Any] = []
    inner.append(inner)
    root = walk(pickle.dumps((inner, inner)))
    assert root[0] is root[1] is root[0].items[0]


def test_every_opcode_is_known() -> None:
    known = {ord(opcode.code) for opcode in pickletools.opcodes}
    assert {code for code in range(256) if HANDLERS[code] is not unknown} == known - {ord(".")}


LARGE = 1 << 16


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_is_long_is_left_where_it_is(protocol: int) -> None:
    value = ["x" * (LARGE + 1), 1 << 5000]
    data = pickle.dumps(value, protocol)
    assert all(isinstance(item, Span) for item in walk(data).items)
    assert rebuilt(walk(data), data) == value


@pytest.mark.parametrize("protocol", [0, 2])
def test_elements_in_a_long_text_are_found(tmp_path: Path, protocol: int) -> None:
    """Protocol 0 has texts as lines with escapes; bytes, as of elements, are such a text too."""
    path = tmp_path / "a.pkl"
    saved = {"w": torch.arange(20_000.0), "text": "é" * (LARGE + 1)}
    path.write_bytes(pickle.dumps(saved, protocol))
    checkpoint = read(path)
    (tensor,) = checkpoint.tensors
    assert (tensor.dtype, tensor.shape) == ("float32", (20_000,))
    assert isinstance(checkpoint.root.get("text"), Span)


def test_a_number_or_name_has_no_long_line() -> None:
    for opcode in b"IFLcpgiP":
        with pytest.raises(InputError, match="a number or name of 70,000 bytes"):
            walk(b"(" + bytes([opcode]) + b"1" * 70_000 + b"\n.")


MEMOS = {
    "from 0": b"(lp0\n(lp1\na0g1\n.",
    "from 1, as Python 2": b"(lp1\n(lp2\na0g2\n.",
    "far apart": b"]r\xff\xff\0\x000]q\x000]q\x010j\xff\xff\0\0.",
    "backwards": b"]q\x020]q\x010]q\x000h\x02.",
    "over again": b"]q\x000K\x01q\x000h\x00.",
    "counted by MEMOIZE": b"K\x07r\x09\0\0\x000K\x08\x940K\x09\x940h\x02.",
}


@pytest.mark.parametrize("name", MEMOS)
def test_memos_are_those_of_pickle(name: str) -> None:
    data = MEMOS[name]
    assert rebuilt(walk(data), data) == pickle.loads(data)


@pytest.mark.parametrize("data", [b"]q\x000h\x01.", b"]q\x010h\x00.", b"g-1\n.", b"]p-1\n."])
def test_what_was_never_kept_is_not_there(data: bytes) -> None:
    with pytest.raises((pickle.UnpicklingError, KeyError, ValueError)):
        pickle.loads(data)
    with pytest.raises(InputError, match="file: broken pickle at byte"):
        walk(data)
