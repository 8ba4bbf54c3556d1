"""The confusion matrix as a file: CSV and PNG in full, npz without its zeros."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.types import Floats, Ints
from pttool.core.eval.writing.texts import BYTE_ORDER_MARK, cell_of
from pttool.errors import UsageError

MOST_CLASSES = 4000  # of a matrix in full: 16 million cells
PICTURE = 1000  # pixels that a picture of few classes is enlarged to
BLOCK = 1 << 16


def matrix_file(evaluation: Evaluation, path: Path, *, normalize: bool, excel: bool) -> bytes:
    """Return the content of a file for C[i, j], how many with label i were predicted j.

    `normalize` divides each row by its sum; `excel` makes a CSV one for Excel. In npz the arrays
    `label`, `prediction` and `count` hold the cells above 0, `names` the classes. Raises UsageError
    for a full matrix of too many.
    """
    if path.suffix.lower() == ".npz":
        return _npz(evaluation)
    if evaluation.counts.num_classes > MOST_CLASSES:
        raise UsageError(
            f"--matrix {path}: {evaluation.counts.num_classes} classes are too many for a full one",
            "write a .npz, which leaves out the zeros",
        )
    cells = dense(evaluation)
    if path.suffix.lower() == ".png":
        return _png(cells)
    return b"".join(_csv(evaluation, cells, normalize=normalize, excel=excel))


def dense(evaluation: Evaluation) -> Ints:
    """Return the whole matrix (C, C)."""
    counts = evaluation.counts
    cells: Ints = np.diag(counts.hits)
    cells[counts.error_label, counts.error_prediction] = counts.error_count
    return cells


def _shares(rows: Ints) -> Floats:
    shares: Floats = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    return shares


def _csv(evaluation: Evaluation, cells: Ints, *, normalize: bool, excel: bool) -> Iterator[bytes]:
    names = [cell_of(evaluation.name(label), excel=excel) for label in range(len(cells))]
    end, mark = ("\r\n", BYTE_ORDER_MARK) if excel else ("\n", "")
    yield (mark + ",".join(["label", *names]) + end).encode()
    for label, name in enumerate(names):
        row = cells[label : label + 1]
        numbers = (_shares(row) if normalize else row)[0].tolist()
        yield (",".join([name, *map(str, numbers)]) + end).encode()


def _npz(evaluation: Evaluation) -> bytes:
    counts = evaluation.counts
    right = np.flatnonzero(counts.hits)
    columns = {
        "label": np.concatenate([right, counts.error_label]),
        "prediction": np.concatenate([right, counts.error_prediction]),
        "count": np.concatenate([counts.hits[right], counts.error_count]),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, column in columns.items():
            _write(archive, key, (len(column),), column.dtype, [column])
        every = range(counts.num_classes)
        longest = max(len(evaluation.name(label)) for label in every)
        dtype: np.dtype[Any] = np.dtype(f"<U{longest}")
        size = max(1, BLOCK // longest)
        names = (
            np.array([evaluation.name(label) for label in every[start : start + size]], dtype)
            for start in range(0, len(every), size)
        )
        _write(archive, "names", (len(every),), dtype, names)
    return buffer.getvalue()


def _write(
    archive: zipfile.ZipFile,
    key: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    blocks: Iterable[NDArray[Any]],
) -> None:
    """Write an array block by block: names of a million classes would take all memory at once."""
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape,
    }  # fmt: skip
    with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        for block in blocks:
            for start in range(0, len(block), BLOCK):
                member.write(np.ascontiguousarray(block[start : start + BLOCK]).tobytes())


def _png(cells: Ints) -> bytes:
    """Return a picture: darker by the root of a cell's share, so that rare errors show.

    Format: https://www.w3.org/TR/png-3/, with 8 bits of red, green and blue per pixel, no filter.
    """
    scale = max(1, PICTURE // len(cells))
    side = scale * len(cells)
    packer = zlib.compressobj()
    packed = []
    for row in range(len(cells)):
        darkness = np.sqrt(_shares(cells[row : row + 1])[0])
        colours = (255 * (1 - darkness), 255 * (1 - 0.8 * darkness), 255 - 90 * darkness)
        line = np.stack(colours, axis=1).astype(np.uint8).repeat(scale, 0)
        packed.append(packer.compress((b"\0" + line.tobytes()) * scale))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", b"".join(packed) + packer.flush()), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
