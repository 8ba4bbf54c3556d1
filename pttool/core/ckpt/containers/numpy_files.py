"""NumPy's files: an .npy holds one array behind a header, an .npz is a zip of them.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import ast
import math
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pttool.core.ckpt.files.payload import blocks, damaged, opened, read_at
from pttool.core.ckpt.files.words import excerpt, quoted
from pttool.core.ckpt.formats.signatures import NPY_MAGIC
from pttool.core.ckpt.tensors.recognition import contiguous_stride
from pttool.core.ckpt.types import Checkpoint, Format, Record, Storage, Tensor
from pttool.core.ckpt.zips.directory import read_directory
from pttool.errors import InputError

# As many as numpy parses of a file it doesn't trust: more can exhaust Python's parser.
LARGEST_HEADER = 10_000
USUAL_HEADER = 128
LARGEST_ITEM = 1 << 31  # numpy keeps it in a C int
OBJECT = "object"

# torch's names; any other type keeps numpy's.
_DTYPES = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8",
    "u2": "uint16", "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32",
    "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_DESCR = re.compile(r"([<>|=]?)([biufcSaUVmMO])(\d{0,9})(\[[0-9a-zA-Z]{1,8}\])?", re.ASCII)
_PYTHON_2_LONG = re.compile(r"(?<=\d)L\b")

# Gives so many of the first bytes, or all where there are fewer.
Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before an array: its type, as torch or else numpy names it, and its layout."""

    dtype: str
    item_bytes: int
    shape: tuple[int, ...]
    is_fortran: bool
    is_big_endian: bool
    size_bytes: int

    @property
    def stride(self) -> tuple[int, ...]:
        """How many elements apart the neighbours in each dimension are."""
        if self.is_fortran:
            return contiguous_stride(self.shape[::-1])[::-1]
        return contiguous_stride(self.shape)


@dataclass(frozen=True, slots=True)
class _Found:
    tensor: Tensor
    warnings: tuple[str, ...]


def open_npy(path: Path) -> Checkpoint:
    """Return the array of an .npy, from its header. Raises InputError for a damaged or cut one.

    Its path is empty, as it is the root itself. Arrays that follow the first are only counted in
    bytes: numpy, too, reads one.
    """
    with opened(path) as file:
        size = os.fstat(file).st_size
        header = _header(lambda count: read_at(file, 0, count, path), path, "the file")
    whole = Record(path.name, path, 0, size, size)
    found = _array((), path.name, header, whole)
    return Checkpoint(
        path=path,
        format=Format.NPY,
        tensors=(found.tensor,),
        records=(whole,),
        facts=_facts([header]),
        warnings=found.warnings,
    )


def open_npz(path: Path) -> Checkpoint:
    """Return the arrays of an .npz, from their headers.

    Raises InputError for a damaged zip, and for a member that is damaged or no array.
    """
    directory = read_directory(path)
    records = directory.records()
    headers = [_header(_reader(record), path, quoted(record.name)) for record in records]
    found = [
        _array((record.name.removesuffix(".npy"),), record.name, header, record)
        for record, header in zip(records, headers, strict=True)
    ]
    return Checkpoint(
        path=path,
        format=Format.NPZ,
        tensors=tuple(each.tensor for each in found),
        records=records,
        facts=_facts(headers),
        warnings=(*directory.warnings, *(text for each in found for text in each.warnings)),
    )


def _reader(record: Record) -> Read:
    def read(count: int) -> bytes:
        return b"".join(blocks(record, stop=min(count, record.size_bytes)))

    return read


def _header(read: Read, path: Path, what: str) -> Header:
    """Return the header at the start of an array. Raises InputError for none or a damaged one."""
    start = read(USUAL_HEADER)
    if not start.startswith(NPY_MAGIC):
        raise damaged(path, f"{what} doesn't start as a NumPy array does")
    if len(start) < 12:
        raise damaged(path, f"cut short: {what} ends within its header")
    version = start[6:8]
    if version not in (b"\1\0", b"\2\0", b"\3\0"):
        raise damaged(path, f"{what} is of .npy version {'.'.join(map(str, version))}, not 1 to 3")
    first = 10 if version == b"\1\0" else 12
    length = int.from_bytes(start[8:first], "little")
    if length > LARGEST_HEADER:
        raise InputError(
            f"{path}: {what} claims a header of {length:,} bytes; numpy allows {LARGEST_HEADER:,}",
            "save plain arrays, not records of many fields",
        )
    stop = first + length
    raw = (start if stop <= USUAL_HEADER else read(stop))[first:stop]
    if len(raw) < length:
        raise damaged(path, f"cut short: {what} ends within its header")
    text = raw.decode("utf-8" if version == b"\3\0" else "latin-1", "replace")
    try:
        return _parsed(text, stop)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        said = excerpt(text.strip())
        raise damaged(path, f"{what} has a damaged header: {said}") from error


def _parsed(text: str, size: int) -> Header:
    """Return a header's literal. Raises ValueError, or as ast.literal_eval does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd escapes in what no one wrote by hand
        try:
            literal: Any = ast.literal_eval(text)
        except SyntaxError:
            literal = ast.literal_eval(_PYTHON_2_LONG.sub("", text))
    if not isinstance(literal, dict) or set(literal) != {"descr", "fortran_order", "shape"}:
        raise ValueError(text)
    descr, is_fortran, shape = literal["descr"], literal["fortran_order"], literal["shape"]
    if not isinstance(shape, tuple) or any(
        type(n) is not int or not 0 <= n < 1 << 63 for n in shape
    ):
        raise ValueError(text)
    if type(is_fortran) is not bool:
        raise ValueError(text)
    item, is_big = _item(descr)
    if item >= LARGEST_ITEM or math.prod(n for n in shape if n) >= 1 << 63:
        raise ValueError(text)
    return Header(_dtype(descr, item), item, shape, is_fortran, is_big, size)


def _item(descr: Any) -> tuple[int, bool]:
    """Return the bytes of an element, -1 if it holds objects, and whether it is big-endian.

    A type is a text, or a list of fields: (name, type) or (name, type, shape), where the name can
    be a pair and the type a list again; a type with a shape of its own is a pair.
    """
    if isinstance(descr, str):
        match = _DESCR.fullmatch(descr)
        if not match:
            raise ValueError(descr)
        order, kind, digits, _ = match.groups()
        if kind == "O":
            return -1, False
        size = int(digits or "0") * (4 if kind == "U" else 1)
        return size, order == ">" and size > 1
    if isinstance(descr, tuple) and len(descr) == 2:
        return _repeated(*descr)
    if not isinstance(descr, list):
        raise ValueError(descr)
    items = [_field(field) for field in descr]
    size = -1 if any(item < 0 for item, _ in items) else sum(item for item, _ in items)
    return size, any(is_big for _, is_big in items)


def _field(field: Any) -> tuple[int, bool]:
    if not isinstance(field, tuple) or len(field) not in (2, 3):
        raise ValueError(field)
    return _repeated(field[1], field[2] if len(field) == 3 else ())


def _repeated(descr: Any, shape: Any) -> tuple[int, bool]:
    shape = shape if isinstance(shape, tuple) else (shape,)
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(shape)
    item, is_big = _item(descr)
    return (item if item < 0 else item * math.prod(shape)), is_big


def _dtype(descr: Any, item: int) -> str:
    if item < 0:
        return OBJECT
    if isinstance(descr, str):
        return _DTYPES.get(descr.lstrip("<>|="), descr)
    return repr(descr).replace(" ", "")


def _array(key: tuple[str, ...], name: str, header: Header, whole: Record) -> _Found:
    """Return the array behind a header, checked against the bytes of its member."""
    said = quoted(name)
    there = whole.size_bytes - header.size_bytes
    needed = math.prod(header.shape) * header.item_bytes if header.dtype != OBJECT else there
    if needed > there:
        what = f"cut short: {needed - there:,} bytes of {said} are missing"
        raise damaged(whole.file, what)
    notes = []
    if header.dtype == OBJECT:
        notes.append(f"{said} is an object array, a pickle: not read")
    if needed < there:
        notes.append(f"{there - needed:,} bytes follow the array in {said}")
    if header.is_big_endian:
        notes.append(f"{said} is big-endian")
    storage, offset = _storage(name, header, whole, needed)
    tensor = Tensor(key, header.dtype, header.shape, header.stride, offset, storage)
    return _Found(tensor, tuple(notes))


def _storage(name: str, header: Header, whole: Record, size: int) -> tuple[Storage, int]:
    """Return where an array's elements are, and after how many they begin.

    A deflated member can only be read from its start, so its header counts as elements, if it is
    a whole number of them: numpy pads headers to 64 bytes, and to 16 before 1.14. Objects count
    as bytes.
    """
    if not whole.is_deflated:
        record = replace(
            whole,
            offset=whole.offset + header.size_bytes,
            size_bytes=size,
            stored_bytes=size,
            crc32=None,
        )
        return Storage(name, "cpu", size, record, header.is_big_endian), 0
    offset, rest = divmod(header.size_bytes, max(header.item_bytes, 1))
    storage = Storage(name, "cpu", whole.size_bytes, whole, header.is_big_endian)
    return storage, 0 if rest else offset


def _facts(headers: Sequence[Header]) -> dict[str, str]:
    orders = {"big" if header.is_big_endian else "little" for header in headers}
    if not orders:
        return {}
    return {"byteorder": orders.pop() if len(orders) == 1 else "mixed"}
