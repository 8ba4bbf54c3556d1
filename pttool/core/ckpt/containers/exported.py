"""The archive that torch.export.save writes, whose weights are listed in JSON.

Source: torch.export.pt2_archive, its constants and `_package`.
"""

import json
from pathlib import Path
from typing import Any

from pttool.core.ckpt.files.payload import read_record
from pttool.core.ckpt.tensors.recognition import MAX_DIMENSIONS
from pttool.core.ckpt.tensors.storages import is_size
from pttool.core.ckpt.types import Checkpoint, Format, Record, Storage, Tensor
from pttool.core.ckpt.zips.directory import read_directory
from pttool.errors import InputError

LARGEST_CONFIG = 1 << 26
CONFIGS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
# torch._export.serde.schema.ScalarType
DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16",
    28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
UNLISTED = "its weights are in a form of before torch 2.8: they are not listed"


def open_exported(path: Path) -> Checkpoint:
    """Return what an exported program holds. Raises InputError for a broken one."""
    directory = read_directory(path)
    records = {record.name.partition("/")[2]: record for record in directory.records()}
    tensors: list[Tensor] = []
    for name in CONFIGS:
        if name in records:
            folder = name.rpartition("/")[0]
            tensors += _tensors(path, records, folder, read_record(records[name], LARGEST_CONFIG))
    version = records.get("archive_version")
    return Checkpoint(
        path=path,
        format=Format.EXPORTED,
        format_version=read_record(version, 256).decode("utf-8", "replace") if version else None,
        tensors=tuple(tensors),
        records=tuple(records.values()),
        warnings=directory.warnings + (() if CONFIGS[0] in records else (UNLISTED,)),
    )


def _tensors(path: Path, records: dict[str, Record], folder: str, config: bytes) -> list[Tensor]:
    try:
        listed = json.loads(config)["config"].items()
        return [
            _tensor(name, entry, records.get(f"{folder}/{entry['path_name']}"))
            for name, entry in listed
            if "tensor_meta" in entry
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: its list of weights is damaged", "copy it again") from error


def _tensor(name: str, entry: Any, record: Record | None) -> Tensor:
    meta = entry["tensor_meta"]
    dtype = DTYPES.get(meta["dtype"], f"type {meta['dtype']}")
    shape, stride = tuple(map(_size, meta["sizes"])), tuple(map(_size, meta["strides"]))
    if len(shape) != len(stride) or len(shape) > MAX_DIMENSIONS:
        raise ValueError(name)
    device = meta["device"]["type"]
    if meta["device"]["index"] is not None:
        device = f"{device}:{meta['device']['index']}"
    size = record.size_bytes if record else 0
    return Tensor(
        path=(name,),
        dtype=dtype,
        shape=shape,
        stride=stride,
        offset=_size(meta["storage_offset"]),
        storage=Storage(str(entry["path_name"]), device, size, record),
        device=device,
        requires_grad=bool(meta["requires_grad"]),
        role="parameter" if entry["is_param"] else "buffer",
    )


def _size(entry: Any) -> int:
    """Return a size, step or offset, which JSON could give as any number."""
    size = entry["as_int"]
    if not is_size(size):
        raise ValueError(size)
    return int(size)
