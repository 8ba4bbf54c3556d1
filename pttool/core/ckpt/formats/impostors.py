"""What is handed over as a checkpoint and is none: said by name, with a way out."""

import errno
import os
import re
import shlex
import zlib
from pathlib import Path

from pttool.core.ckpt.files.payload import read_at
from pttool.core.ckpt.formats.texts import refused_text
from pttool.errors import InputError

BLOCK_BYTES = 1 << 20
_ZEROS = bytes(BLOCK_BYTES)
_DOWNLOAD = "download or copy it again, and compare its size with the source"
_WEIGHTS = "get the weights as torch.save, safetensors or NumPy write them"

# How the file starts, what it is, and what helps. Sources: the formats' own specifications.
SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (rb"BZh[1-9]1AY&SY", "compressed by bzip2", "unpack it: bunzip2 -c {file} > {out}"),
    (rb"\xfd7zXZ\x00", "compressed by xz", "unpack it: xz -dc {file} > {out}"),
    (rb"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: zstd -dc {file} > {out}"),
    (rb"\x04\x22\x4d\x18", "compressed by lz4", "unpack it: lz4 -dc {file} > {out}"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x {file}"),
    (rb"Rar!\x1a\x07", "a RAR archive", "unpack it: unrar x {file}"),
    (rb"GGUF", "a GGUF model of llama.cpp", _WEIGHTS),
    (rb"(lmgg|tjgg|fmgg|algg)", "a GGML model of an old llama.cpp", _WEIGHTS),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes", "h5py opens it; " + _WEIGHTS),
    (rb".{4}TFL3", "a TensorFlow Lite model", _WEIGHTS),
    (rb"ftrt|ptrt", "a TensorRT engine", "convert from the checkpoint that it was built of"),
    # major 0, minor 2, revision 0 or 5: https://github.com/AlexeyAB/darknet/blob/master/src/parser.c
    (rb"\x00{4}\x02\x00{3}[\x00\x05]\x00{3}", "a Darknet weights file", _WEIGHTS),
    (rb"PAR1", "a Parquet table", _WEIGHTS),
    (rb"ARROW1|FEA1", "an Arrow table", _WEIGHTS),
    (rb"SQLite format 3\x00", "an SQLite database", _WEIGHTS),
    (rb"%PDF-", "a PDF document", "check which file was downloaded"),
    (rb"\x89PNG\r\n\x1a\n", "a PNG picture", "check which file was downloaded"),
    (rb"\xff\xd8\xff", "a JPEG picture", "check which file was downloaded"),
    (rb"GIF8[79]a|RIFF.{4}WEBP", "a picture", "check which file was downloaded"),
    (rb"RIFF.{4}WAVE|OggS|ID3|fLaC", "a sound file", "check which file was downloaded"),
    (rb".{4}ftyp|\x1aE\xdf\xa3", "a video", "check which file was downloaded"),
    (rb"\x7fELF|MZ.{58}|\xcf\xfa\xed\xfe", "a program or library", "check which file was meant"),
    (
        rb"\x00\x05\x16\x07",
        "a side file of macOS, without the data", "give the file without ._ before its name",
    ),
    (
        rb"\xff\xfe.{3}\x00|\xfe\xff.{2}\x00",
        "UTF-16 text, as PowerShell's > makes of any download", "download it with -OutFile or -o",
    ),
)  # fmt: skip
_COMPILED = [(re.compile(start, re.DOTALL), what, hint) for start, what, hint in SIGNATURES]
# ModelProto: ir_version, then producer_name and the field behind it, or the graph and its fields.
_ONNX_PRODUCER = re.compile(rb"\x08[\x01-\x1f]\x12([\x01-\x7f])", re.DOTALL)
_ONNX_GRAPH = re.compile(rb"\x08[\x01-\x1f]\x3a[\x80-\xff]{1,8}[\x00-\x7f][\x0a\x12\x2a]")
_ONNX_TAGS = b"\x1a\x22\x28\x32\x3a\x42\x72"
_TENSORFLOW_INDEX = bytes.fromhex("57fb808b247547db")  # LevelDB's table magic, at the end


def refused(file: int, path: Path, head: bytes, size: int) -> InputError:
    """Return what to say of a file that no checkpoint starts like.

    Raises InputError for an error of the disk.
    """
    if not size:
        return InputError(f"{path}: is an empty file", _DOWNLOAD)
    if not head.strip(b"\0"):
        return _zeros(file, path, size)
    if head.startswith(b"\x1f\x8b"):
        return _gzip(path, head)
    for start, what, hint in _COMPILED:
        if start.match(head):
            return InputError(f"{path}: is {what}, not a checkpoint", _filled(hint, path))
    if _is_onnx(head):
        return InputError(f"{path}: is an ONNX model", "onnx.load opens it; " + _WEIGHTS)
    if size >= 48 and read_at(file, size - 8, 8, path) == _TENSORFLOW_INDEX:
        return InputError(f"{path}: is the index of a TensorFlow checkpoint", _WEIGHTS)
    return refused_text(path, head, size) or InputError(
        f"{path}: is no checkpoint of a known format: it starts with the bytes {head[:8].hex(' ')}",
        _DOWNLOAD,
    )


def _filled(hint: str, path: Path) -> str:
    stem = path.name.removesuffix(path.suffix) or path.name
    return hint.format(file=shlex.quote(str(path)), out=shlex.quote(f"{stem}-unpacked.pt"))


def _zeros(file: int, path: Path, size: int) -> InputError:
    count = _leading_zeros(file, path, size)
    if count < size:
        return InputError(
            f"{path}: starts with {count:,} zero bytes: a part of a download or copy is missing",
            _DOWNLOAD,
        )
    return InputError(
        f"{path}: is all zero bytes ({size:,}): the disk was full, or a download only reserved it",
        "download or copy it again, with enough room on the disk",
    )


def _leading_zeros(file: int, path: Path, size: int) -> int:
    at = 0
    while (at := _next_data(file, at, size)) < size:
        block = read_at(file, at, BLOCK_BYTES, path)
        if not block:
            return size
        if block != _ZEROS[: len(block)]:
            return at + len(block) - len(block.lstrip(b"\0"))
        at += len(block)
    return size


def _next_data(file: int, at: int, size: int) -> int:
    """Skip a hole, where the system knows of them: a reserved file is one hole of any size."""
    whence = getattr(os, "SEEK_DATA", None)
    if whence is None or at >= size:
        return at
    try:
        return os.lseek(file, at, whence)
    except OSError as error:
        return size if error.errno == errno.ENXIO else at


def _is_onnx(head: bytes) -> bool:
    """Whether a file starts as https://github.com/onnx/onnx/blob/main/onnx/onnx.proto says."""
    if _ONNX_GRAPH.match(head):
        return True
    producer = _ONNX_PRODUCER.match(head)
    if not producer:
        return False
    stop = 4 + producer[1][0]
    name, tag = head[4:stop], head[stop : stop + 1]
    return name.isascii() and name.decode().isprintable() and tag != b"" and tag in _ONNX_TAGS


def _gzip(path: Path, head: bytes) -> InputError:
    try:
        inside = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, 512)
    except zlib.error:
        inside = b""
    if inside[257:262] == b"ustar":
        hint = f"unpack it: tar -xzf {shlex.quote(str(path))}"
    else:
        hint = _filled("unpack it: gunzip -c {file} > {out}", path)
    return InputError(f"{path}: is compressed by gzip", hint)
