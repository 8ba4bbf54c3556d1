"""Pickles and archives that mean harm, made as an attacker would."""

import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Runs:
    """Pickles as the call of a function, which unpickling would make."""

    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced

    def __call__(self) -> None:
        """Be callable, as pickle wants of what is called."""


def named(module: str, name: str, argument: bytes = b")", protocol: int = 4) -> bytes:
    """Return a pickle that calls a name with a tuple, given as opcodes."""
    parts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80" + bytes([protocol]) + parts + b"\x93" + argument + b"R."


def torch_zip(path: Path, pickled: bytes, more: Mapping[str, bytes] | None = None) -> Path:
    """Write a torch zip with this data.pkl, and records beside it."""
    records = {"data.pkl": pickled, "version": b"3\n", "byteorder": b"little", **(more or {})}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), data)
    return path


def storage(numel: int, key: str = "0") -> bytes:
    """Return the opcodes of a reference to a storage of floats."""
    return (
        b"(X\7\0\0\0storagectorch\nFloatStorage\n"
        + b"".join(b"X" + struct.pack("<I", len(text)) + text.encode() for text in (key, "cpu"))
        + pickle.dumps(numel, 2)[2:-1]
        + b"tQ"
    )


def tensor(numel: int, size: int, key: str = "0") -> bytes:
    """Return the pickle of one tensor of floats that claims a storage and a size."""
    number = pickle.dumps(size, 2)[2:-1]
    args = storage(numel, key) + b"K\0" + number + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)R"
    return b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + args + b"tR."
