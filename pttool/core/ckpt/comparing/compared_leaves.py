"""Compare what two checkpoints hold under one key."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pttool.core.ckpt.comparing.value_identity import fingerprint
from pttool.core.ckpt.tensors.values import json_value
from pttool.core.ckpt.types import Checkpoint, Tensor, Value

if TYPE_CHECKING:
    from pttool.core.ckpt.comparing.differences import Difference

EQUAL, ONLY_A, ONLY_B = "equal", "only_a", "only_b"
SHAPE, LAYOUT, DTYPE, VALUES, VALUE = "shape", "layout", "dtype", "values", "value"

Leaf = Tensor | Value


@dataclass(frozen=True, slots=True)
class Pair:
    """What is under a key: `unknown` is why elements that should have been could not be read."""

    key: str
    status: str
    a: Leaf | None
    b: Leaf | None
    difference: "Difference | None" = None
    unknown: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether no difference was found."""
        return self.status == EQUAL

    @property
    def is_of_tensors(self) -> bool:
        """Whether both are tensors."""
        return isinstance(self.a, Tensor) and isinstance(self.b, Tensor)

    @property
    def text_a(self) -> Any:
        """What A has: the type and shape of a tensor, or the value."""
        return _said(self.a)

    @property
    def text_b(self) -> Any:
        """What B has."""
        return _said(self.b)


def compared(
    key: str,
    a: Leaf,
    b: Leaf | None,
    checkpoints: tuple[Checkpoint, Checkpoint],
    *,
    read_elements: bool,
) -> Pair:
    """Compare what is under a key. Raises InputError for elements that are damaged."""
    if b is None:
        return Pair(key, ONLY_A, a, None)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _of_tensors(key, a, b, read_elements)
    if isinstance(a, Value) and isinstance(b, Value):
        same = fingerprint(a, checkpoints[0]) == fingerprint(b, checkpoints[1])
        return Pair(key, EQUAL if same else VALUE, a, b)
    return Pair(key, VALUE, a, b)


def _of_tensors(key: str, a: Tensor, b: Tensor, read_elements: bool) -> Pair:
    if a.shape != b.shape:
        return Pair(key, SHAPE, a, b)
    if a.layout != b.layout:
        return Pair(key, LAYOUT, a, b)
    status = EQUAL if a.dtype == b.dtype else DTYPE
    if not read_elements:
        return Pair(key, status, a, b)
    from pttool.core.ckpt.comparing.differences import difference  # needs numpy

    found = difference(a, b, key)
    if isinstance(found, str):
        return Pair(key, status, a, b, None, found)
    if status == EQUAL and not found.is_equal:
        status = VALUES
    return Pair(key, status, a, b, found)


def _said(leaf: Leaf | None) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, Value):
        return json_value(leaf.node)
    layout = "" if leaf.layout == "strided" else f" {leaf.layout}"
    return f"{leaf.dtype} {list(leaf.shape)}{layout}"
