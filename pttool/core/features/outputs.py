"""The tensors inside whatever a module returns: the one rule of `NAME[key]`."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from pttool.core.features.types import Keys, Kind

DEEPEST = 6


def kind_of(output: Any) -> Kind:
    """Return what kind of thing a module returned."""
    match output:
        case Tensor():
            return Kind.TENSOR
        case Mapping():
            return Kind.DICT
        case tuple():
            return Kind.TUPLE
        case list():
            return Kind.LIST
    return Kind.OTHER


def tensors_in(output: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Tensor]]:
    """Yield every tensor in nested dicts, tuples and lists with the keys that lead to it."""
    if isinstance(output, Tensor):
        yield keys, output
    elif len(keys) < DEEPEST:
        for key, element in _elements(output):
            yield from tensors_in(element, (*keys, key))


def _elements(output: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(output, Mapping):
        yield from ((str(key), element) for key, element in output.items())
    elif isinstance(output, tuple | list):
        yield from ((str(index), element) for index, element in enumerate(output))
