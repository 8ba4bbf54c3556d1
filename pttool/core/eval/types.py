"""What travels through an evaluation: blocks of predictions in, counts out."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# What a sample's label is: a class, a map of classes, or a set of them.
Task = Literal["classes", "pixels", "multilabel"]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of samples. All arrays have length n; labels and predictions are class numbers (int64).

    `scores` is (n, C) as it was stored (float16, float32 or float64); `prediction` is then its
    argmax, ties to the lower class. `index` identifies samples across shards, where stored.
    `differs` (n,) says where a saved prediction is not what the scores say.
    Of the task multilabel, labels and predictions are (n, C) of bool, one per class.
    """

    label: NDArray[Any]
    prediction: NDArray[Any]
    scores: NDArray[Any] | None = None
    index: NDArray[Any] | None = None
    differs: Flags | None = None


@dataclass(slots=True)
class Beside:
    """A prediction saved beside scores: how many of `n` samples they disagree on.

    The prediction comes from the column `used`; `unused` is the other, and `option` takes that.
    """

    used: str
    unused: str
    option: str
    n: int = 0
    differing: int = 0

    def notes(self) -> tuple[str, ...]:
        """Return the note on it, if they disagree."""
        if not self.differing:
            return ()
        told = f"{self.used} and {self.unused} disagree on {self.differing} of {self.n}"
        return (f"{told} samples: {self.used} was used ({self.option} for {self.unused})",)


@dataclass(frozen=True, slots=True)
class Predictions:
    """Saved predictions, to be read once.

    `num_classes` is None until the largest label or prediction is known. `names` maps a class
    number to its name. `score_kind` is "logits" or "probabilities" (None without scores).
    `threshold` is the probability from which a class is predicted, where that came from scores of
    the task multilabel. The counters in `dropped` and `beside` (None where no prediction was saved
    beside scores) are filled while the blocks are read.
    """

    blocks: Iterable[Block]
    num_classes: int | None
    names: dict[int, str]
    score_kind: str | None = None
    dropped: "Dropped" = field(default_factory=lambda: Dropped())
    is_multilabel: bool = False
    threshold: float | None = None
    beside: Beside | None = None


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

    Of the task multilabel each class is counted for itself: there are no errors of one class for
    another, and a sample counts in `n` once for every label that it has.
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
        """The number of labels, one per sample."""
        return int(self.support.sum())
