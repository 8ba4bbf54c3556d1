"""What the parts of `features` hand to each other. Without torch, for the command line's sake."""

from dataclasses import dataclass
from enum import StrEnum

Shape = tuple[int, ...]
Keys = tuple[str, ...]


class Pool(StrEnum):
    """What is done to each output before it is kept."""

    NONE = "none"
    GAP = "gap"
    FLATTEN = "flatten"
    CLS = "cls"


class Format(StrEnum):
    """What the parts are joined into: a file for each layer, or one for all."""

    NPY = "npy"
    NPZ = "npz"
    SAFETENSORS = "safetensors"
    PARQUET = "parquet"


class Kind(StrEnum):
    """What a module returns."""

    TENSOR = "tensor"
    TUPLE = "tuple"
    LIST = "list"
    DICT = "dict"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor in an output: the keys that lead to it, none if it is the output itself.

    `shape` is that for a batch of one picture. `bytes_per_image` is None if the first dimension
    isn't the batch: then there is no row for each picture.
    """

    keys: Keys
    shape: Shape
    dtype: str
    bytes_per_image: int | None


@dataclass(frozen=True, slots=True)
class Output:
    """What one call of a module returned, and the tensors in it."""

    kind: Kind
    parts: tuple[Part, ...]

    def part(self, keys: Keys) -> Part | None:
        """Return the tensor that keys lead to."""
        return next((part for part in self.parts if part.keys == keys), None)


@dataclass(frozen=True, slots=True)
class Layer:
    """A module by its first name, and its outputs in the order of its calls, none if never called.

    `aliases` are the names that papers use, and others under which the module is held.
    """

    name: str
    type: str
    outputs: tuple[Output, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """How often one forward calls it."""
        return len(self.outputs)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tensor to take: `layer` is what the user calls it, the rest says where it is found."""

    layer: str
    module: str
    call: int = 0
    keys: Keys = ()


def written(keys: Keys) -> str:
    """Return keys as they are typed: `[0][boxes]`."""
    return "".join(f"[{key}]" for key in keys)
