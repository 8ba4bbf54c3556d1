"""The .npy format: the header and the rows of one array from a stream, never by pickle.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.reading.sources import spooled
from pttool.core.eval.reading.tables import Column, Columns, Shape, Table, wide_keys
from pttool.errors import InputError

MAGIC = b"\x93NUMPY"
BLOCK_BYTES = 1 << 23  # of one column: a block of wide rows is cut to this
LARGEST_HEADER = 1 << 16
LARGEST_ROW = 1 << 28
# What has a meaning as labels, predictions, scores or indices: bool, integers, floats, text.
READABLE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|[SU][0-9]{1,9})")
SHAPE = re.compile(r"['\"]shape['\"]\s*:\s*\(([0-9,\sL]{0,400})\)")
DESCR = re.compile(r"['\"]descr['\"]\s*:\s*(['\"][^'\"]*['\"]|\[)")
ORDER = re.compile(r"['\"]fortran_order['\"]\s*:\s*(True|False)")


@dataclass(frozen=True, slots=True)
class Header:
    """What an array's header claims, and the bytes before its first element."""

    shape: Shape
    descr: str
    fortran: bool
    size: int

    def dtype(self, what: str) -> np.dtype[Any]:
        """Return the dtype. Raises InputError for one that can't hold what is read here."""
        if self.descr.endswith("O"):
            raise InputError(
                f"{what}: is an object array, which is refused: loading it could run any code",
                "save numbers or text: array.astype(int) or array.astype(str)",
            )
        if not READABLE.fullmatch(self.descr):
            kind = "a structured array" if self.descr == "[" else f"of dtype {self.descr!r}"
            raise InputError(
                f"{what}: is {kind}, not integers, floats, bool or text",
                "save plain columns: np.savez(FILE, label=..., prediction=...)",
            )
        return np.dtype(self.descr)

    def rows_in_a_block(self, rows: int, what: str) -> int:
        """Return how many rows to read at a time: at most so many, and fewer wide ones."""
        width = math.prod(self.shape[1:]) * self.dtype(what).itemsize
        return max(1, min(rows, BLOCK_BYTES // max(width, 1)))


def npy_table(files: Mapping[str, Callable[[], BinaryIO]]) -> Table:
    """Return the arrays of several .npy files as one table; the keys are the files' names."""
    headers, lengths = {}, {}
    for key, reopen in files.items():
        with reopen() as stream:
            headers[key] = read_header(stream, key)
            lengths[key] = stream.seek(0, 2)

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        rows = min(headers[key].rows_in_a_block(rows, key) for key in wanted)
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(files[key]()) for key in wanted]
            columns = [
                read_rows(stream, read_header(stream, key), lengths[key], rows, key)
                for stream, key in zip(streams, wanted, strict=True)
            ]
            for block in zip(*columns, strict=True):
                yield dict(zip(wanted, block, strict=True))

    shapes = {key: header.shape for key, header in headers.items()}
    return Table(" and ".join(files), tuple(files), shapes, wide_keys(shapes), read)


def read_header(stream: BinaryIO, what: str) -> Header:
    """Return the header that a stream starts with. Raises InputError for any other start."""
    start = stream.read(8)
    if start[:6] != MAGIC or len(start) < 8:
        raise InputError(f"{what}: does not start as a .npy array does", "save it with numpy")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if start[6] not in (1, 2, 3) or length > LARGEST_HEADER:
        raise InputError(
            f"{what}: has a .npy header of version {start[6]} and {length} bytes",
            f"versions 1 to 3 up to {LARGEST_HEADER} bytes are read: save it with numpy again",
        )
    text = stream.read(length).decode("utf-8", "replace")
    descr, order, shape = DESCR.search(text), ORDER.search(text), SHAPE.search(text)
    if not (descr and order and shape):
        raise InputError(f"{what}: has a damaged .npy header", "copy or save it again")
    dimensions = tuple(int(n) for n in re.findall("[0-9]{1,19}", shape[1]))
    kind = descr[1].strip("'\"")
    return Header(dimensions, kind, order[1] == "True", 8 + width + length)


def read_rows(
    stream: BinaryIO, header: Header, length: int, rows: int, what: str
) -> Iterator[Column]:
    """Yield the rows of an array in blocks; the stream stands behind its header.

    Blocks have so many rows. `length` is the size of the whole array, header included, as the
    file system or the zip's directory gives it. Raises InputError for a header that claims
    another.
    """
    dtype = header.dtype(what)
    claimed = math.prod(header.shape) * dtype.itemsize
    if claimed != length - header.size:
        raise InputError(
            f"{what}: its header claims shape {header.shape}, {claimed} bytes, "
            f"but {length - header.size} follow",
            "it is cut or damaged: copy or save it again",
        )
    if not header.shape:
        raise InputError(f"{what}: is one number, not an array", "save one value per sample")
    width = math.prod(header.shape[1:]) * dtype.itemsize
    if width > LARGEST_ROW or (not width and header.shape[0]):  # of none there are any number
        raise InputError(f"{what}: has rows of {width} bytes", "save (samples, classes)")
    if header.fortran and sum(size > 1 for size in header.shape) > 1:
        blocks = _fortran_rows(stream, header, dtype, rows, what)
    else:
        blocks = _c_rows(stream, header, dtype, rows, what)
    for block in blocks:
        yield as_column(block, what)


def as_column(array: NDArray[Any], what: str) -> Column:
    """Return an array in the machine's byte order; text as a list, as its width is a claim."""
    if array.dtype.kind not in "biufSU":
        message = f"{what}: is of dtype {array.dtype}, not integers, floats, bool or text"
        raise InputError(message, "save numbers or text")
    if array.dtype.kind not in "SU":
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.shape not in ((len(array),), (len(array), 1)):
        raise InputError(f"{what}: is text of shape {array.shape}", "save one name per sample")
    try:
        return [
            text.decode() if isinstance(text, bytes) else text
            for text in array.reshape(-1).tolist()
        ]
    except ValueError as error:
        message = f"{what}: holds text that is not Unicode"
        raise InputError(message, "save it as UTF-8 or as str") from error


def _c_rows(
    stream: BinaryIO, header: Header, dtype: np.dtype[Any], rows: int, what: str
) -> Iterator[NDArray[Any]]:
    count, *rest = header.shape
    width = math.prod(rest) * dtype.itemsize
    for start in range(0, count, rows):
        part = min(rows, count - start)
        block = _read_exactly(stream, part * width, what)
        yield np.ndarray((part, *rest), dtype, block)


def _fortran_rows(
    stream: BinaryIO, header: Header, dtype: np.dtype[Any], rows: int, what: str
) -> Iterator[NDArray[Any]]:
    """Yield rows of an array that is stored column by column, from a copy that can be seeked.

    A column is what lies at one place in every row, of more than two dimensions too.
    """
    count, *rest = header.shape
    columns = math.prod(rest)
    held = max(rows, BLOCK_BYTES // (columns * dtype.itemsize))  # of few rows a pass takes as long
    with spooled(stream, what) as copy:
        for start in range(0, count, held):
            part = min(held, count - start)
            block = np.empty((columns, part), dtype)
            for column in range(columns):
                copy.seek((column * count + start) * dtype.itemsize)
                cells = _read_exactly(copy, part * dtype.itemsize, what)
                block[column] = np.ndarray(part, dtype, cells)
            whole = block.T.reshape((part, *rest), order="F")
            for first in range(0, part, rows):
                yield np.ascontiguousarray(whole[first : first + rows])


def _read_exactly(stream: BinaryIO, size: int, what: str) -> bytes:
    found = stream.read(size)
    if len(found) != size:
        raise InputError(f"{what}: ends too early", "it is cut: copy or save it again")
    return found
