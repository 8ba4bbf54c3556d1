"""What a checkpoint is made of, whatever its container."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pttool.core.ckpt.pickles.nodes import Global, Node


class Format(StrEnum):
    """A kind of file or folder that holds tensors."""

    TORCH_ZIP = "torch-zip"
    TORCH_LEGACY = "torch-legacy"
    TORCH_TAR = "torch-tar"
    TORCHSCRIPT = "torchscript"
    EXPORTED = "torch-export"
    SAFETENSORS = "safetensors"
    SHARDED = "sharded"
    DISTRIBUTED = "distributed"
    PICKLE = "pickle"
    NPZ = "npz"
    NPY = "npy"


@dataclass(frozen=True, slots=True)
class Record:
    """A run of bytes in a file, under the name that the container gives it.

    `stored_bytes` are in the file at `offset`; `size_bytes` is what they are once inflated.
    """

    name: str
    file: Path
    offset: int
    size_bytes: int
    stored_bytes: int
    crc32: int | None = None
    is_deflated: bool = False


@dataclass(frozen=True, slots=True)
class Storage:
    """The memory behind tensors. `record` is None when the file doesn't hold its bytes.

    `size_bytes` is what the checkpoint claims, `record.size_bytes` what is there. The elements of a
    `big_endian` one are the other way round.
    """

    key: str
    device: str
    size_bytes: int
    record: Record | None
    big_endian: bool = False


Role = Literal["parameter", "buffer"]
# Of a name in a pickle; None stands for something computed.
Use = Literal["call", "items", "keys", "state"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that a checkpoint describes; its elements are not read.

    `path` leads to it from the root: dict keys, indices, "@state" and so on. `stride` and `offset`
    count elements, as torch does. `layout` is torch's (strided, sparse_coo, ...), or quantized,
    jagged, nested, meta. The tensors that a sparse, jagged or nested one is made of, and the chunks
    of a distributed one, are its `parts`. `pending` is what torch does to the elements when they
    are read: "conj", "neg".
    """

    path: tuple[Node, ...]
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()
    offset: int = 0
    storage: Storage | None = None
    device: str = "cpu"
    requires_grad: bool = False
    role: Role | None = None
    layout: str = "strided"
    subclass: str | None = None
    parts: tuple["Tensor", ...] = ()
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """Something in a checkpoint that is no tensor: a number, a text, a class's name.

    `pickle` holds the pickle that it is from, where that isn't the checkpoint's own.
    """

    path: tuple[Node, ...]
    node: Node
    pickle: Record | None = None


@dataclass(frozen=True, slots=True)
class Pickled:
    """One pickle of a checkpoint, walked: `globals` in order of use, `trailing` bytes after STOP.

    `unsupported` names the opcodes that torch's weights_only unpickler refuses; `uses` is what is
    done with names: each is called, or what it returns is given items, keys or a state.
    """

    record: Record
    root: Node
    start: int
    end: int
    protocol: int
    globals: tuple[Global, ...]
    persistent_ids: tuple[Node, ...]
    unsupported: tuple[str, ...] = ()
    trailing_bytes: int = 0
    uses: frozenset[tuple[Use, Global | None]] = frozenset()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a file or folder holds. `root` is None where there is no pickle of the whole.

    `leaves` are the tensors and values of a pickle in its order.
    `records` are all runs of bytes, tensors' or not; `facts` what the container says of itself
    (byteorder, metadata, versions of frameworks); `warnings` what is odd about it, in words.
    """

    path: Path
    format: Format
    format_version: str | None = None
    root: Node = None
    tensors: tuple[Tensor, ...] = ()
    values: tuple[Value, ...] = ()
    leaves: tuple[Tensor | Value, ...] = ()
    records: tuple[Record, ...] = ()
    pickles: tuple[Pickled, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
