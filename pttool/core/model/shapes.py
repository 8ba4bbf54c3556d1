"""The shapes of whatever a module takes or returns."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

DEEPEST = 6
MOST_ELEMENTS = 64


def describe(value: Any, depth: int = 0) -> Any:
    """Return a tensor's shape as a list; containers keep their form, other things give their type.

    None is None, numbers and strings their own value; nesting deeper than 6 is named by its type.
    """
    if isinstance(value, Tensor):
        return [_size(size) for size in value.shape]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth == DEEPEST:
        return type(value).__name__
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name, None) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): describe(element, depth + 1) for key, element in value.items()}
    if isinstance(value, list | tuple):
        shown = [describe(element, depth + 1) for element in value[:MOST_ELEMENTS]]
        return shown + [f"and {len(value) - MOST_ELEMENTS} more"] * (len(value) > MOST_ELEMENTS)
    return type(value).__name__


def _size(size: Any) -> int | None:
    try:
        return int(size)
    except (
        AttributeError,
        RuntimeError,
        TypeError,
        ValueError,
    ):  # a nested tensor's ragged dimension has none
        return None


def describe_call(positional: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Return the shapes of a call: of its only argument, or a list, with named ones by name."""
    shapes = [describe(value) for value in positional]
    if named:
        by_name = {name: describe(value) for name, value in named.items() if value is not None}
        shapes += [by_name] if by_name and shapes else []
        return shapes[0] if len(shapes) == 1 else shapes or by_name
    return shapes[0] if len(shapes) == 1 else shapes
