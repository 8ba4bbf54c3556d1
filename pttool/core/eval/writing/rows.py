"""The rows of an evaluation: one per class, and the pairs that are most often confused."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Confused:
    """How often a class was taken for another (or another for it)."""

    name: str
    label: int
    count: int


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class. A score that is 0/0 is 0.0 and named in `undefined`; unknown ones are None."""

    name: str
    label: int
    support: int
    precision: float
    recall: float
    f1: float
    auc: float | None = None
    ap: float | None = None
    iou: float | None = None
    undefined: tuple[str, ...] = ()
    confused: tuple[Confused, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Samples of one class that were predicted to be another."""

    label_name: str
    predicted_name: str
    label: int
    predicted: int
    count: int
