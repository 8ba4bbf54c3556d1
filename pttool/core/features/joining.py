"""Join the parts of each layer into files, a piece at a time: memory doesn't grow with them."""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from pttool.core.features.parts import Stored, joined_file, npy_header, part_file
from pttool.core.features.ranks import Shard
from pttool.core.features.staging import place, staged
from pttool.core.features.types import Format
from pttool.errors import UsageError

PIECE_BYTES = 1 << 24
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is written
# https://huggingface.co/docs/safetensors: a length, JSON, then the bytes of all tensors.
SAFETENSORS_DTYPES = {
    "float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32",
    "uint64": "U64", "bool": "BOOL", "complex64": "C64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Joint:
    """What is joined: all rows of each layer, in the parts in their order, and the ids of rows."""

    out: Path
    parts: Sequence[int]
    layers: Mapping[str, Stored]
    ids: Callable[[], Iterator[str]]


def join(joint: Joint, format: Format, shard: Shard) -> dict[str, str]:
    """Write the parts as `format`, and return the name of each layer's file.

    NPY makes a file for each layer, which `np.load(mmap_mode="r")` opens; the others one for all.
    NPZ has the ids as `ids`, PARQUET as the column `id`, with each layer's rows as flat lists.

    Raises UsageError for a dtype that the format doesn't have, UnavailableError for what the system
    refuses, ModuleNotFoundError for PARQUET without pyarrow.
    """
    _check_dtypes(joint, format)
    names = {layer: joined_file(format, layer) for layer in joint.layers}
    with staged(joint.out, shard) as folder:
        if format is Format.NPY:
            for layer, name in names.items():
                with (folder / name).open("wb") as stream:
                    _write_npy(joint, layer, stream)
        else:
            _WRITERS[format](joint, folder / joined_file(format))
        place(folder, joint.out, list(dict.fromkeys(names.values())))
    return names


def _write_npy(joint: Joint, layer: str, stream: IO[bytes]) -> None:
    stream.write(npy_header(joint.layers[layer]))
    _copy_rows(joint, layer, stream)


def _copy_rows(joint: Joint, layer: str, stream: IO[bytes]) -> None:
    for part in joint.parts:
        with (joint.out / part_file(layer, part)).open("rb") as source:
            np.lib.format.read_magic(source)
            np.lib.format.read_array_header_1_0(source)
            shutil.copyfileobj(source, stream, PIECE_BYTES)


def _write_npz(joint: Joint, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for layer in joint.layers:
            with _member(archive, f"{layer}.npy") as stream:
                _write_npy(joint, layer, stream)
        with _member(archive, "ids.npy") as stream:
            _write_ids(joint, stream)


def _write_ids(joint: Joint, stream: IO[bytes]) -> None:
    """Write the ids as an array of the width of the longest, one by one."""
    rows = next(iter(joint.layers.values())).shape[0]
    dtype = np.dtype(f"<U{max(map(len, joint.ids()), default=1)}")
    described = {"descr": dtype.str, "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(stream, described)
    for one in joint.ids():
        stream.write(np.array(one, dtype).tobytes())


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(zipfile.ZipInfo(name, EPOCH), "w", force_zip64=True)


def _write_safetensors(joint: Joint, path: Path) -> None:
    entries: dict[str, Any] = {}
    end = 0
    widths = {layer: np.dtype(stored.dtype).itemsize for layer, stored in joint.layers.items()}
    layers = sorted(widths, key=lambda layer: -widths[layer])  # so that each begins aligned
    for layer in layers:
        stored = joint.layers[layer]
        start, end = end, end + stored.array_bytes
        entries[layer] = {
            "dtype": SAFETENSORS_DTYPES[stored.dtype],
            "shape": list(stored.shape),
            "data_offsets": [start, end],
        }
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for layer in layers:
            _copy_rows(joint, layer, stream)


def _write_parquet(joint: Joint, path: Path) -> None:
    """Write a row group for each part; the shape of a row is in its field's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [pa.field("id", pa.string())]
    for layer, stored in joint.layers.items():
        kind = pa.list_(pa.from_numpy_dtype(np.dtype(stored.dtype)), _width(stored))
        fields.append(pa.field(layer, kind, metadata={"shape": json.dumps(stored.shape[1:])}))
    schema = pa.schema(fields)
    ids = joint.ids()
    with pq.ParquetWriter(path, schema) as writer:
        for part in joint.parts:
            arrays = [
                np.load(joint.out / part_file(layer, part), mmap_mode="r") for layer in joint.layers
            ]
            columns = [pa.array([next(ids) for _ in arrays[0]], pa.string())]
            for array, field in zip(arrays, fields[1:], strict=True):
                flat = pa.array(array.reshape(-1))
                columns.append(pa.FixedSizeListArray.from_arrays(flat, type=field.type))
            writer.write_table(pa.table(columns, schema=schema))


def _width(stored: Stored) -> int:
    return int(np.prod(stored.shape[1:], dtype=np.int64))


def _check_dtypes(joint: Joint, format: Format) -> None:
    for layer, stored in joint.layers.items():
        if format is Format.SAFETENSORS and stored.dtype not in SAFETENSORS_DTYPES:
            _refuse(format, f"{layer} is {stored.dtype}, which it doesn't have")
        if format is Format.PARQUET and np.dtype(stored.dtype).kind == "c":
            _refuse(format, f"{layer} is {stored.dtype}, which it doesn't have")
    if format in (Format.NPZ, Format.PARQUET) and {"id", "ids"} & joint.layers.keys():
        _refuse(format, "a layer has the name of the ids")


def _refuse(format: Format, reason: str) -> None:
    raise UsageError(f"--format {format}: {reason}", "--merge makes an .npy file of each layer")


_WRITERS = {
    Format.NPZ: _write_npz,
    Format.SAFETENSORS: _write_safetensors,
    Format.PARQUET: _write_parquet,
}
