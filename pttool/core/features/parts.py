"""Parts: fixed ranges of the inputs, each committed by a record that is renamed last."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch import Tensor

from pttool.core.features.types import Format, Shape
from pttool.errors import InputError

# By default a process has some parts to do, none of them long: a part is what a kill may cost.
PARTS_WANTED, MOST_BATCHES = 64, 16


@dataclass(frozen=True, slots=True)
class Layout:
    """How inputs are cut: part k holds the inputs from k * size on. Which process does it is open.

    Nothing of it hangs on the number of processes, so that batches are the same for any.
    """

    inputs: int
    size: int

    def __len__(self) -> int:
        return -(-self.inputs // self.size)

    def numbers(self, part: int) -> range:
        """Return the numbers of a part's inputs."""
        return range(part * self.size, min((part + 1) * self.size, self.inputs))


@dataclass(frozen=True, slots=True)
class Stored:
    """What a file of a layer holds: a shape (rows, ...) and numpy's name of a dtype."""

    shape: Shape
    dtype: str

    @property
    def array_bytes(self) -> int:
        """The size of the array alone."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def file_bytes(self) -> int:
        """The size of the .npy file that it is in."""
        return len(npy_header(self)) + self.array_bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """An input without a row, and why."""

    input: int
    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """What a finished part holds; row i of each layer belongs to `ids[i]`.

    `configuration` is the hash of what it was made with, `made_on` the processor.
    """

    part: int
    configuration: str
    layers: Mapping[str, Stored]
    made_on: str
    ids: tuple[str, ...]
    failures: tuple[Failure, ...]


class RowsFile:
    """An .npy file that rows are added to: its header is put right in the end."""

    def __init__(self, stream: BinaryIO, layer: str) -> None:
        self._stream = stream
        self._layer = layer
        self._like: Stored | None = None
        self._rows = 0

    def add(self, rows: Tensor) -> None:
        """Add rows (n, ...); n may be 0. Raises InputError where they have another shape."""
        array = self._array(rows)
        like = Stored((0, *array.shape[1:]), array.dtype.name)
        if self._like is None:
            self._like = like
            self._stream.write(npy_header(like))
        elif self._like != like:
            raise InputError(
                f"{self._layer}: gives {list(like.shape[1:])} {like.dtype} for each picture of a "
                f"batch, and {list(self._like.shape[1:])} {self._like.dtype} before",
                "take a layer whose output has one shape, or --pool gap",
            )
        self._stream.write(array.data)
        self._rows += len(array)

    def finish(self) -> Stored:
        """Complete the file, which the caller then closes, and return what it holds."""
        assert self._like is not None
        stored = Stored((self._rows, *self._like.shape[1:]), self._like.dtype)
        self._stream.seek(0)
        self._stream.write(npy_header(stored))
        return stored

    def _array(self, rows: Tensor) -> NDArray[Any]:
        """Return rows for numpy, which has no bfloat16: as float32, which holds it exactly."""
        try:
            array: NDArray[Any] = (rows.float() if rows.dtype == torch.bfloat16 else rows).numpy()
        except TypeError as error:
            kind = str(rows.dtype).removeprefix("torch.")
            raise InputError(
                f"{self._layer}: gives {kind}, which .npy can't hold", "take another layer"
            ) from error
        return array


def npy_header(stored: Stored) -> bytes:
    """Return the header of an .npy file, as long for any number of rows.

    numpy leaves room for the first dimension to grow:
    https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    stream = BytesIO()
    dtype = npy.dtype_to_descr(np.dtype(stored.dtype))
    described = {"descr": dtype, "fortran_order": False, "shape": stored.shape}
    npy.write_array_header_1_0(stream, described)
    return stream.getvalue()


def folder_of(layer: str) -> str:
    """Return the name of a layer's folder: its own, but for what would lead out of the output."""
    name = quote(layer, safe=" []:,=+@")
    return name if name and name[0] != "." else f"%2E{name[1:]}"


def part_file(layer: str, part: int) -> str:
    """Return the path of a layer's part, relative to the output folder."""
    return f"{folder_of(layer)}/part-{part:05d}.npy"


def joined_file(format: Format, layer: str = "") -> str:
    """Return the name of what parts are joined into: of one layer, or of all."""
    return f"{folder_of(layer) if format is Format.NPY else 'features'}.{format}"


def record_file(part: int) -> str:
    """Return the name of a part's record, by which it is finished."""
    return f"part-{part:05d}.json"


def record_text(record: Record) -> str:
    """Return a record as JSON."""
    document = {
        "part": record.part,
        "configuration_sha256": record.configuration,
        "layers": {
            name: {"shape": list(one.shape), "dtype": one.dtype}
            for name, one in record.layers.items()
        },
        "made_on": record.made_on,
        "ids": list(record.ids),
        "failures": [failure_item(one) for one in record.failures],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def failure_item(failure: Failure) -> dict[str, Any]:
    """Return a failure as JSON has it."""
    return {"input": failure.input, "id": failure.id, "reason": failure.reason}


def read_record(out: Path, part: int, configuration: str) -> Record | None:
    """Return the record of a finished part, None for one that is not, or was made otherwise.

    All its files are there, with the sizes that they had.
    """
    try:
        found = json.loads((out / record_file(part)).read_text(encoding="utf-8"))
        layers = {
            name: Stored(tuple(one["shape"]), one["dtype"]) for name, one in found["layers"].items()
        }
        failures = tuple(Failure(**one) for one in found["failures"])
        made_with, made_on, ids = found["configuration_sha256"], found["made_on"], found["ids"]
        record = Record(found["part"], made_with, layers, made_on, tuple(ids), failures)
        sizes = {
            layer: (out / part_file(layer, part)).stat().st_size == stored.file_bytes
            for layer, stored in layers.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # not there, or not ours
        return None
    is_own = record.part == part and record.configuration == configuration
    return record if is_own and all(sizes.values()) else None


def records(out: Path, parts: Iterable[int], configuration: str) -> dict[int, Record]:
    """Return the records of the parts that are finished."""
    found = ((part, read_record(out, part, configuration)) for part in parts)
    return {part: record for part, record in found if record is not None}


def default_size(inputs: int, batch_size: int) -> int:
    """Return how many inputs a part has: whole batches, so that it changes none of them."""
    return batch_size * min(MOST_BATCHES, max(1, -(-inputs // (batch_size * PARTS_WANTED))))


def ranges(parts: Sequence[int]) -> str:
    """Return numbers in few words: 0-3, 7."""
    runs: list[list[int]] = []
    for part in parts:
        if runs and runs[-1][1] == part - 1:
            runs[-1][1] = part
        else:
            runs.append([part, part])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
