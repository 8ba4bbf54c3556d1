"""Values of a checkpoint that are no tensors, as JSON and in words."""

import struct
from collections.abc import Sequence
from typing import Any

from pttool.core.ckpt.pickles.nodes import Call, Dict, Global, List, Node, Persistent, Set, Span
from pttool.core.ckpt.tensors.leaves import is_array, is_scalar
from pttool.core.ckpt.tensors.recognition import sizes_of

LONGEST_LIST = 1000
LONGEST_TEXT = 10_000
LONGEST_SHOWN = 8
# Containers in containers: deeper ones are said in words, or not at all.
DEEPEST_LIST = 3
DEEPEST_SHOWN = 3
# numpy's codes of numbers, and struct's.
SCALAR_LAYOUTS = {
    "f8": "d", "f4": "f", "f2": "e", "b1": "?",
    "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u2": "H", "u1": "B",
}  # fmt: skip
# Letters of numpy's type codes.
ARRAY_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool"}


def type_name(node: Node) -> str:
    """Return the name of the Python type that a node would become."""
    match node:
        case None:
            return "None"
        case Dict():
            return "dict"
        case List():
            return "list"
        case Set():
            return "set"
        case Span(is_text=is_text):
            return "str" if is_text else "bytes"
        case Global():
            return "global"
        case Persistent():
            return "reference"
        case Call() if is_array(node):
            return "numpy.ndarray" if node.path.endswith("_reconstruct") else "numpy.generic"
        case Call(function=Global() as function):
            return function.path
        case Call():
            return "object"
    return "str" if isinstance(node, str) else type(node).__name__


def json_value(node: Node, depth: int = 0) -> Any:
    """Return a node as JSON has it; what JSON can't hold, or is too long for a cell, in words."""
    if depth > DEEPEST_LIST:
        return in_words(node)
    match node:
        case None | bool() | int() | float():
            return node
        case str() if len(node) <= LONGEST_TEXT:
            return str(node)
        case bytes():
            return node.decode("utf-8", "backslashreplace")
        case List(items=items) | Set(items=items) if len(items) <= LONGEST_LIST:
            return [json_value(item, depth + 1) for item in items]
        case tuple() if len(node) <= LONGEST_LIST:
            return [json_value(item, depth + 1) for item in node]
        case Dict():
            return {}
        case Call() if is_array(node) and (found := numpy_scalar(node)) is not None:
            return found
    return in_words(node)


def in_words(node: Node, depth: int = 0) -> str:
    """Return what a node is, on one line."""
    if depth > DEEPEST_SHOWN:
        return "..."
    match node:
        case str():
            return str(node) if len(node) <= LONGEST_TEXT else f"{len(node):,} characters"
        case Span(start=start, stop=stop):
            return f"{stop - start:,} bytes"
        case Global():
            return node.path
        case Dict():
            return "{}"
        case List(items=items) | Set(items=items):
            return _listed(items, depth)
        case tuple():
            return _listed(node, depth)
        case Call() if is_array(node):
            scalar, found = numpy_scalar(node), array_type(node)
            if scalar is not None:
                return str(scalar)
            return "" if found is None else f"{found[0]} {list(found[1])}"
        case Call():
            return f"{type_name(node)}({_arguments(node, depth)})"
        case Persistent():
            return "a storage"
    return str(node)


def numpy_scalar(node: Call) -> float | int | bool | None:
    """Return the number that a pickled numpy scalar is, or None for anything else.

    Source: numpy.generic.__reduce__, which calls scalar(dtype, bytes).
    """
    args = node.args if isinstance(node.args, tuple) else ()
    if not node.path.endswith(".scalar") or len(args) != 2 or not isinstance(args[0], Call):
        return None
    dtype, raw = args
    code = dtype.args[0] if isinstance(dtype.args, tuple) and dtype.args else None
    layout = SCALAR_LAYOUTS.get(code) if isinstance(code, str) else None
    if layout is None or not isinstance(raw, bytes) or len(raw) != struct.calcsize(layout):
        return None
    is_big = isinstance(dtype.state, tuple) and dtype.state[1:2] == (">",)
    number: float | int | bool = struct.unpack(f"{'>' if is_big else '<'}{layout}", raw)[0]
    return number


def array_type(node: Call) -> tuple[str, tuple[int, ...]] | None:
    """Return the element type and the shape of a pickled numpy array.

    Source: numpy.ndarray.__reduce__, whose state is (version, shape, dtype, is_fortran, data).
    """
    state = node.state
    if not (isinstance(state, tuple) and len(state) >= 3 and isinstance(state[2], Call)):
        return None
    shape = sizes_of(state[1])
    code = state[2].args[0] if isinstance(state[2].args, tuple) and state[2].args else None
    if shape is None or not isinstance(code, str):
        return None
    kind, size = code[:1], code[1:]
    if kind == "b":
        return "bool", shape
    if kind in ARRAY_KINDS and size.isdecimal():
        return f"{ARRAY_KINDS[kind]}{int(size) * 8}", shape
    return str(code), shape


def _listed(items: Sequence[Node], depth: int) -> str:
    """Return a short list as it is, of a long one the length."""
    if len(items) > LONGEST_SHOWN:
        return f"{len(items):,} items"
    return f"[{', '.join(_argument(item, depth + 1) for item in items)}]"


def _arguments(node: Call, depth: int) -> str:
    args = node.args if isinstance(node.args, tuple) else (node.args,)
    shown = [_argument(arg, depth + 1) for arg in args[:10]]
    if len(args) > 10:
        shown.append("...")
    return ", ".join(shown)


def _argument(node: Node, depth: int) -> str:
    if isinstance(node, str):
        return repr(str(node))
    return str(node) if is_scalar(node) and not isinstance(node, Global) else in_words(node, depth)
