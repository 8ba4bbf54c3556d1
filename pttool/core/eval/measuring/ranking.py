"""AUC and average precision of every class, from score columns kept in memory or in a file."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.types import Ints

Scores = NDArray[Any]
MEMORY = 210_000_000  # bytes of scores kept before they go to a file
CHUNK = 16_000_000  # bytes transposed at a time
PANEL = 8_000_000  # bytes of columns sorted at a time, where they come from memory
PANEL_FROM_FILE = 64_000_000


@dataclass(slots=True)
class _Chunk:
    """`rows` samples, class by class: in memory, or at `offset` in the file."""

    values: Scores
    rows: int = 0
    offset: int | None = None

    @property
    def room(self) -> int:
        return int(self.values.shape[1]) - self.rows


class ColumnStore:
    """The scores of samples that come row by row, to be read column by column.

    Scores are kept as stored (float16, float32 or float64), so that ties stay what they were. Past
    `memory` bytes they go to a temporary file without a name, which the system drops with the
    process; where it has no room, everything is let go and `skipped` says why.
    """

    def __init__(self, num_classes: int, memory: int = MEMORY) -> None:
        self.num_classes = num_classes
        self.rows = 0
        self.skipped: str | None = None
        self._memory = memory
        self._held = 0
        self._chunks: list[_Chunk] = []
        self._file: IO[bytes] | None = None

    def add(self, scores: Scores) -> None:
        """Keep the scores (n, C) of some samples."""
        if self.skipped is not None:
            return
        try:
            self._add(scores)
        except OSError as error:
            self.close()
            reason = error.strerror or str(error)
            self.skipped = f"the scores don't fit into {tempfile.gettempdir()}: {reason}"

    def columns(self) -> Iterator[Scores]:
        """Yield the scores (n,) of each class in turn; they are yours to sort.

        float16 comes as float32, which numpy sorts faster.
        """
        size = max((chunk.values.itemsize for chunk in self._chunks), default=4)
        panel_bytes = PANEL if self._file is None else PANEL_FROM_FILE
        width = max(1, panel_bytes // max(1, self.rows * size))
        for first in range(0, self.num_classes, width):
            columns = slice(first, min(first + width, self.num_classes))
            parts = [self._read(chunk, columns) for chunk in self._chunks]
            panel = np.concatenate(parts, axis=1)
            yield from panel.astype(np.float32) if panel.dtype == np.float16 else panel

    def close(self) -> None:
        """Let go of the scores and of the file."""
        self._chunks = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add(self, scores: Scores) -> None:
        done = 0
        while done < len(scores):
            chunk = self._filling(scores.dtype)
            part = scores[done : done + chunk.room]
            chunk.values[:, chunk.rows : chunk.rows + len(part)] = part.T
            chunk.rows += len(part)
            done += len(part)
        self.rows += len(scores)

    def _filling(self, dtype: np.dtype[Any]) -> _Chunk:
        """Return the chunk that has room for rows of this type."""
        last = self._chunks[-1] if self._chunks else None
        if last is not None and last.room and last.values.dtype == dtype:
            return last
        rows = max(1, CHUNK // (self.num_classes * dtype.itemsize))
        size = rows * self.num_classes * dtype.itemsize
        if self._file is not None or self._held + size > self._memory:
            self._spill()
        self._held += size
        self._chunks.append(_Chunk(np.empty((self.num_classes, rows), dtype)))
        return self._chunks[-1]

    def _spill(self) -> None:
        """Write the chunks in memory to the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the store)
        for chunk in self._chunks:
            if chunk.offset is None:
                chunk.offset = self._file.seek(0, 2)
                self._file.write(np.ascontiguousarray(chunk.values[:, : chunk.rows]).data)
                chunk.values = np.empty((0, chunk.rows), chunk.values.dtype)
        self._file.flush()
        self._held = 0

    def _read(self, chunk: _Chunk, columns: slice) -> Scores:
        if chunk.offset is None or self._file is None:
            return chunk.values[columns, : chunk.rows]
        dtype, width = chunk.values.dtype, columns.stop - columns.start
        self._file.seek(chunk.offset + columns.start * chunk.rows * dtype.itemsize)
        part = np.empty((width, chunk.rows), dtype)
        self._file.readinto(part.data.cast("B"))  # type: ignore[attr-defined]
        return part


@dataclass(frozen=True, slots=True)
class Ranking:
    """AUC and average precision of each class; None where undefined.

    The macro averages are over the `classes` that have both positives and negatives.
    """

    auc: list[float | None]
    ap: list[float | None]
    macro_auc: float | None
    macro_ap: float | None
    classes: int


def rank(label: Ints, store: ColumnStore) -> Ranking:
    """Compare the scores of each class's samples with those of all others.

    `label` has length `store.rows`. The AUC is scikit-learn's `roc_auc_score` of one class against
    the rest, the average precision its `average_precision_score`; ties count as there.
    """
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=store.num_classes)).tolist()
    positives = (order[start:end] for start, end in pairwise([0, *ends]))
    return _rank(zip(store.columns(), positives, strict=True))


def rank_sets(labels: ColumnStore, scores: ColumnStore) -> Ranking:
    """Compare the scores of the samples that have a label with those of the others, as `rank`.

    `labels` holds the bool (n, C) of several labels per sample.
    """
    positives = map(np.flatnonzero, labels.columns())
    return _rank(zip(scores.columns(), positives, strict=True))


def _rank(columns: Iterable[tuple[Scores, Ints]]) -> Ranking:
    """Rank each class, from its scores and the rows of its samples."""
    auc: list[float | None] = []
    ap: list[float | None] = []
    for column, positives in columns:
        area, precision = rank_column(column, positives) if len(positives) else (None, None)
        auc.append(area)
        ap.append(precision)
    both = [c for c, value in enumerate(auc) if value is not None]
    return Ranking(auc, ap, _mean(auc, both), _mean(ap, both), len(both))


def rank_column(column: Scores, positives: Ints) -> tuple[float | None, float]:
    """Return AUC (None without negatives) and average precision; sorts the scores in place.

    `positives` are the rows, at least one, of the samples of the class.
    """
    own = np.sort(column[positives])
    column.sort()
    p, n = len(own), len(column)
    below = np.searchsorted(column, own, "left")
    # Each positive wins over what is below it and halves with its equals (Mann-Whitney's U),
    # counted over all samples: p * p / 2 of that is positives against positives.
    wins = int(below.sum()) + int(np.searchsorted(column, own, "right").sum()) - p * p
    auc = wins / (2 * p * (n - p)) if p < n else None
    own_below = np.searchsorted(own, own, "left")
    return auc, float(((p - own_below) / (n - below)).mean())


def _mean(values: list[float | None], of: list[int]) -> float | None:
    chosen = [value for number in of if (value := values[number]) is not None]
    return float(np.mean(chosen)) if chosen else None
