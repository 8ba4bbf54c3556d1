"""The confusion matrix as a file: CSV and PNG in full, npz without its zeros."""

import io
from pathlib import Path

import numpy as np

from pttool.core.csv_cells import quoted
from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.types import Floats, Ints
from pttool.errors import UsageError

SUFFIXES = (".csv", ".npz", ".png")
MOST_CLASSES = 4000  # of a matrix in full: 16 million cells
SMALLEST_PICTURE = 512


def matrix_file(evaluation: Evaluation, path: Path, *, normalize: bool) -> bytes:
    """Return the content of a file for C[i, j], how many with label i were predicted j.

    `normalize` divides each row by its sum. In npz the arrays `label`, `prediction` and `count`
    hold the cells above 0, `names` the classes. Raises UsageError for a full matrix of too many.
    """
    if path.suffix == ".npz":
        return _npz(evaluation)
    if evaluation.counts.num_classes > MOST_CLASSES:
        raise UsageError(
            f"--matrix {path}: {evaluation.counts.num_classes} classes are too many for a full one",
            "write a .npz, which leaves out the zeros",
        )
    cells = dense(evaluation)
    shares = cells / np.maximum(cells.sum(axis=1, keepdims=True), 1)
    if path.suffix == ".png":
        return _png(shares)
    return _csv(evaluation, shares if normalize else cells)


def dense(evaluation: Evaluation) -> Ints:
    """Return the whole matrix (C, C)."""
    counts = evaluation.counts
    cells: Ints = np.diag(counts.hits)
    cells[counts.error_label, counts.error_prediction] = counts.error_count
    return cells


def _csv(evaluation: Evaluation, cells: Ints | Floats) -> bytes:
    names = [quoted(evaluation.name(label)) for label in range(len(cells))]
    lines = [",".join(["label", *names])]
    for name, row in zip(names, cells.tolist(), strict=True):
        lines.append(",".join([name, *map(str, row)]))
    return ("\n".join(lines) + "\n").encode()


def _npz(evaluation: Evaluation) -> bytes:
    counts = evaluation.counts
    right = np.flatnonzero(counts.hits)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        label=np.concatenate([right, counts.error_label]),
        prediction=np.concatenate([right, counts.error_prediction]),
        count=np.concatenate([counts.hits[right], counts.error_count]),
        names=np.array([evaluation.name(label) for label in range(counts.num_classes)]),
    )
    return buffer.getvalue()


def _png(shares: Floats) -> bytes:
    """Return a picture: darker by the root of a cell's share, so that rare errors show."""
    from PIL import Image

    scale = max(1, -(-SMALLEST_PICTURE // len(shares)))
    darkness = np.sqrt(shares)
    colours = np.stack([255 * (1 - darkness), 255 * (1 - 0.8 * darkness), 255 - 90 * darkness], 2)
    pixels = np.kron(colours.astype(np.uint8), np.ones((scale, scale, 1), np.uint8))
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
