"""safetensors: the length of a header, the header as JSON, then the tensors without a gap.

Format: https://github.com/huggingface/safetensors/blob/main/README.md#format; its types and the
checks of sizes: safetensors/src/tensor.rs there.
"""

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pttool.core.ckpt.files.payload import damaged, opened, read_at
from pttool.core.ckpt.files.words import excerpt, quoted
from pttool.core.ckpt.formats.json_objects import without_doubles
from pttool.core.ckpt.tensors.recognition import contiguous_stride
from pttool.core.ckpt.types import Checkpoint, Format, Record, Storage, Tensor
from pttool.errors import InputError

LARGEST_HEADER = 100_000_000  # MAX_HEADER_SIZE
METADATA = "__metadata__"

# The format's types: torch's name, and bits of an element.
DTYPES = {
    "BOOL": ("bool", 8), "U8": ("uint8", 8), "I8": ("int8", 8), "U16": ("uint16", 16),
    "I16": ("int16", 16), "U32": ("uint32", 32), "I32": ("int32", 32), "U64": ("uint64", 64),
    "I64": ("int64", 64), "F16": ("float16", 16), "BF16": ("bfloat16", 16), "F32": ("float32", 32),
    "F64": ("float64", 64), "C64": ("complex64", 64), "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E5M2": ("float8_e5m2", 8), "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8), "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F4": ("float4_e2m1fn_x2", 4), "F6_E2M3": ("f6_e2m3", 6), "F6_E3M2": ("f6_e3m2", 6),
}  # fmt: skip
NOT_IN_TORCH = ("F6_E2M3", "F6_E3M2")
NAMES = {torch: (name, bits) for name, (torch, bits) in DTYPES.items() if name not in NOT_IN_TORCH}

# Read piece by piece, as a header may hold a hundred megabytes of brackets.
_SPACE = rb"[ \t\r\n]*+"
_STRING = rb'"(?:[^"\\\x00-\x1f]++|\\.)*+"'
_PAIR = _STRING + _SPACE + rb":" + _SPACE + _STRING + _SPACE
_KEY = re.compile(_SPACE + rb"(" + _STRING + rb")" + _SPACE + rb":" + _SPACE)
_TEXTS = re.compile(
    rb"(null|\{" + _SPACE + rb"(?:" + _PAIR + rb"(?:,|(?=\}))" + _SPACE + rb")*+\})"
)
_INFO = re.compile(rb"(\{[^{}]{0,65536}+\})")
_NEXT = re.compile(_SPACE + rb"([,}])")
_REST = re.compile(_SPACE)
_DTYPE = re.compile(r"\w{1,32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Info:
    """What the header says of a tensor: bytes `start` to `stop` behind it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def open_safetensors(path: Path) -> Checkpoint:
    """Return what the header says, checked against the file; no byte of a tensor is read.

    Raises InputError for a header that is damaged, or that doesn't fit its file.
    """
    with opened(path) as file:
        size = os.fstat(file).st_size
        header = _read_header(file, size, path)
    metadata: dict[str, str] = {}
    infos = list(_infos(header, metadata, path))
    first = 8 + len(header)
    _check_places(infos, size - first, path)
    tensors = tuple(_tensor(info, first, path) for info in infos)
    return Checkpoint(
        path=path,
        format=Format.SAFETENSORS,
        tensors=tensors,
        records=tuple(t.storage.record for t in tensors if t.storage and t.storage.record),
        facts=metadata,
        warnings=tuple(_oddities(infos)),
    )


def safetensors_header(
    entries: Sequence[tuple[str, str, tuple[int, ...], int]], metadata: Mapping[str, str]
) -> bytes:
    """Return the bytes before the tensors, which follow in the order of the entries.

    An entry is a name, a type as torch calls it, a shape, and a size in bytes. Raises InputError
    for what the format can't carry: a type, a size that isn't the shape's, a name that occurs
    twice or isn't Unicode, a header over its limit.
    """
    header: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    start = 0
    for name, dtype, shape, size in entries:
        if name in header or name == METADATA:
            raise InputError(f"{quoted(name)}: the name is taken", "rename one of the tensors")
        header[name] = {
            **_written(name, dtype, shape, size),
            "data_offsets": [start, start + size],
        }
        start += size
    return encoded_header(header)


def encoded_header(header: Mapping[str, object], *, least: int = 0) -> bytes:
    """Return a header with its length before it, padded to `least` bytes and to a multiple of 8.

    Raises InputError for a text that isn't Unicode, and a header over the format's limit.
    """
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        what = f"{excerpt(str(error.object))}: a text isn't Unicode"
        raise InputError(what, "safetensors holds UTF-8 only") from error
    text = text.ljust(least, b" ")
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_HEADER:
        what = f"the header takes {len(text):,} bytes, and the format allows {LARGEST_HEADER:,}"
        raise InputError(what, "split the tensors into several files")
    return len(text).to_bytes(8, "little") + text


def _written(name: str, dtype: str, shape: tuple[int, ...], size: int) -> dict[str, object]:
    if dtype not in NAMES:
        what = f"{quoted(name)}: safetensors has no type for {dtype}"
        raise InputError(what, "convert it to another type first, or keep the torch format")
    written, bits = NAMES[dtype]
    if written == "F4":  # two to an element of torch's
        if not shape:
            raise InputError(f"{quoted(name)}: safetensors has no single {dtype}", "leave it out")
        shape = (*shape[:-1], shape[-1] * 2)
    if _numel(shape) * bits != size * 8:
        what = f"{quoted(name)}: {size} bytes are not those of shape {list(shape)} in {written}"
        raise InputError(what, "write it contiguous")
    return {"dtype": written, "shape": list(shape)}


def _read_header(file: int, size: int, path: Path) -> bytes:
    start = read_at(file, 0, 8, path)
    length = int.from_bytes(start, "little")
    if len(start) < 8:
        raise damaged(path, f"cut short: it has {size} bytes, and a header takes 10 or more")
    if length > LARGEST_HEADER:
        raise damaged(
            path, f"its header claims {length:,} bytes; the format allows {LARGEST_HEADER:,}"
        )
    if length > size - 8:
        raise damaged(path, f"cut short: {length - size + 8:,} bytes of its header are missing")
    return read_at(file, 8, length, path)


def _infos(header: bytes, metadata: dict[str, str], path: Path) -> Iterator[_Info]:
    """Yield what the header says of its tensors, in its order, and fill in its metadata."""
    seen = set()
    for name, value in _pairs(header, path):
        if name in seen:
            raise damaged(path, f"its header names {quoted(name)} twice")
        seen.add(name)
        if name == METADATA:
            metadata.update(value or {})
        else:
            yield _info(name, value, path)


def _pairs(header: bytes, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the header's object."""
    if not header.startswith(b"{"):
        raise damaged(path, "its header is no JSON object")
    decode = json.JSONDecoder(object_pairs_hook=without_doubles).decode
    at, is_last = 1, bool(re.match(rb"\{" + _SPACE + rb"\}", header))
    if is_last:
        at = header.index(b"}") + 1
    try:
        while not is_last:
            key = _matched(_KEY, header, at)
            name = decode(key[1].decode())
            found = _matched(_TEXTS if name == METADATA else _INFO, header, key.end())
            value = decode(found[1].decode())
            texts = itertools.chain(*value.items()) if name == METADATA and value else (name,)
            "".join(texts).encode()  # a lone half of a surrogate pair is no Unicode
            yield name, value
            end = _matched(_NEXT, header, found.end())
            at, is_last = end.end(), end[1] == b"}"
        if _matched(_REST, header, at).end() != len(header):
            raise ValueError(f"something follows its end at {at}")
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise damaged(path, f"its header is damaged near byte {8 + at}: {reason}") from error


def _matched(pattern: re.Pattern[bytes], header: bytes, at: int) -> re.Match[bytes]:
    match = pattern.match(header, at)
    if match is None:
        raise ValueError(f"unexpected {excerpt(header[at : at + 24].decode('utf-8', 'replace'))}")
    return match


def _info(name: str, value: dict[str, Any], path: Path) -> _Info:
    dtype, shape, places = (value.get(key) for key in ("dtype", "shape", "data_offsets"))
    what = f"its header says of {quoted(name)}"
    if not (isinstance(dtype, str) and _DTYPE.fullmatch(dtype)):
        raise damaged(path, f"{what} the dtype {excerpt(str(dtype))}")
    if not (isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in shape)):
        raise damaged(path, f"{what} the shape {excerpt(str(shape))}")
    if not (
        isinstance(places, list)
        and len(places) == 2
        and all(type(n) is int for n in places)
        and 0 <= places[0] <= places[1] < 1 << 63
    ):
        raise damaged(path, f"{what} the data_offsets {excerpt(str(places))}")
    info = _Info(name, dtype, tuple(shape), *places)
    numel = _numel(info.shape)
    if dtype in DTYPES and numel * DTYPES[dtype][1] != (info.stop - info.start) * 8:
        taken = f"in {info.stop - info.start} bytes"
        raise damaged(path, f"{what} the shape {excerpt(str(shape))} of {dtype} {taken}")
    return info


def _numel(shape: tuple[int, ...]) -> int:
    """Return the number of elements, or -1 where the library's 64 bits overflow on the way."""
    numel = 1
    for length in shape:
        numel *= length
        if numel >= 1 << 64:
            return -1
    return numel


def _check_places(infos: Sequence[_Info], size: int, path: Path) -> None:
    """Compare the places of the tensors with each other and with the bytes behind the header."""
    stop = max((info.stop for info in infos), default=0)
    if stop > size:
        raise damaged(path, f"cut short: {stop - size:,} bytes of its tensors are missing")
    ordered = sorted(infos, key=lambda info: (info.start, info.stop))
    reached, last = 0, ""
    for info in ordered:
        if info.start < reached:
            raise damaged(path, f"its tensors {quoted(last)} and {quoted(info.name)} overlap")
        if info.start > reached:
            gap = f"{info.start - reached:,} bytes before {quoted(info.name)}"
            raise damaged(path, f"{gap} belong to no tensor")
        reached, last = info.stop, info.name
    if size > stop:
        raise damaged(path, f"{size - stop:,} bytes after its last tensor belong to none")


def _tensor(info: _Info, first: int, path: Path) -> Tensor:
    dtype, shape = _torch_type(info)
    size = info.stop - info.start
    record = Record(info.name, path, first + info.start, size, size)
    return Tensor(
        path=(info.name,),
        dtype=dtype,
        shape=shape,
        stride=contiguous_stride(shape),
        storage=Storage(info.name, "cpu", size, record),
    )


def _torch_type(info: _Info) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape that torch sees: F4 in pairs, where the last dimension allows."""
    if info.dtype == "F4":
        if not _is_paired(info):
            return "f4", info.shape
        return DTYPES["F4"][0], (*info.shape[:-1], info.shape[-1] // 2)
    name, _ = DTYPES.get(info.dtype, (info.dtype.lower(), 0))
    return name, info.shape


def _is_paired(info: _Info) -> bool:
    return bool(info.shape) and info.shape[-1] % 2 == 0


def _oddities(infos: Sequence[_Info]) -> Iterator[str]:
    for dtype, count in Counter(info.dtype for info in infos).items():
        many = f"{count:,} tensor{'s' * (count != 1)} of type {dtype}"
        if dtype not in DTYPES:
            yield f"{many}, which the format doesn't know: sizes not checked"
        elif dtype in NOT_IN_TORCH:
            yield f"{many}, which torch has no type for"
    odd = sum(info.dtype == "F4" and not _is_paired(info) for info in infos)
    if odd:
        yield f"{odd:,} of type F4 with an odd last dimension, which torch can't load"
