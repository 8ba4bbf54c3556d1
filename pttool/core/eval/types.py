"""What travels through an evaluation: blocks of predictions in, counts out."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of samples. All arrays have length n; labels and predictions are class numbers.

    `scores` is (n, C) as it was stored (float16, float32 or float64); `prediction` is then its
    argmax, ties to the lower class. `index` identifies samples across shards, where stored.
    """

    label: Ints
    prediction: Ints
    scores: NDArray[Any] | None = None
    index: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class Predictions:
    """Saved predictions, to be read once.

    `num_classes` is None until the largest label or prediction is known. `names` maps a class
    number to its name. `score_kind` is "logits" or "probabilities" (None without scores). The
    counters in `dropped` are filled while the blocks are read.
    """

    blocks: Iterable[Block]
    num_classes: int | None
    names: dict[int, str]
    score_kind: str | None = None
    dropped: "Dropped" = field(default_factory=lambda: Dropped())


@dataclass(slots=True)
class Dropped:
    """Samples left out while reading: by label (--ignore-index), as duplicates, for NaN scores."""

    ignored: int = 0
    duplicates: int = 0
    not_finite: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """A confusion matrix, without its zeros: C[i, j] is how many with label i were predicted j.

    `support`, `predicted` and `hits` (the diagonal) have length `num_classes`. The errors are the
    cells off the diagonal with a count above 0, sorted by label, then prediction.
    """

    num_classes: int
    support: Ints
    predicted: Ints
    hits: Ints
    error_label: Ints
    error_prediction: Ints
    error_count: Ints

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.support.sum())
