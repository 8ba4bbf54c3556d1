"""The options of `pttool eval` that say what is read."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from pttool.errors import UsageError

if TYPE_CHECKING:
    from pttool.core.eval.types import Predictions


class Task(StrEnum):
    """What a label is a label of."""

    CLASSES = "classes"
    MULTILABEL = "multilabel"
    PIXELS = "pixels"


class OnNaN(StrEnum):
    """What becomes of samples with scores that are not finite."""

    REFUSE = "refuse"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Where labels, predictions and scores are, and what the classes are called."""

    true: Annotated[
        str | None,
        Option(
            "--true",
            metavar="KEY",
            help="Key of the labels, or a .npy file without FILE.",
            show_default=False,
        ),
    ] = None
    pred: Annotated[
        str | None,
        Option(
            "--pred",
            metavar="KEY",
            help="Key of the predictions, or a .npy file.",
            show_default=False,
        ),
    ] = None
    scores: Annotated[
        str | None,
        Option(
            "--scores",
            metavar="KEY",
            help="Key of the scores (N, C), or a .npy file.",
            show_default=False,
        ),
    ] = None
    classes: Annotated[
        Path | None,
        Option(
            "--classes",
            metavar="FILE",
            show_default=False,
            help="Class names: a line each, JSON, YAML, or a folder of class folders.",
        ),
    ] = None
    num_classes: Annotated[
        int | None,
        Option("--num-classes", metavar="N", min=1, help="Number of classes.", show_default=False),
    ] = None
    ignore_index: Annotated[
        int | None,
        Option(
            "--ignore-index", metavar="N", help="Drop samples with this label.", show_default=False
        ),
    ] = None
    task: Annotated[
        Task,
        Option("--task", help="One class per sample, 0 or 1 for each class, or a class per pixel."),
    ] = Task.CLASSES
    threshold: Annotated[
        float | None,
        Option(
            "--threshold",
            metavar="P",
            min=0.0,
            max=1.0,
            show_default=False,
            help="Multilabel: probability that predicts a class (0.5).",
        ),
    ] = None
    nan: Annotated[OnNaN, Option("--nan", help="What to do about scores that are not finite.")] = (
        OnNaN.REFUSE
    )

    def names(self) -> dict[int, str] | None:
        """Return the class names, read once even where predictions are read twice."""
        if self.classes is None:
            return None
        from pttool.core.eval.classes.names import read_classes

        return read_classes(self.classes)

    def open(self, files: list[Path], names: dict[int, str] | None) -> "Predictions":
        """Return the predictions in the files; raises as open_predictions does."""
        from pttool.core.eval.samples.predictions import open_predictions

        return open_predictions(
            ["-" if str(file) == "-" else file for file in files],
            true=self.true,
            pred=self.pred,
            scores=self.scores,
            classes=names,
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
            drop_nan=self.nan is OnNaN.DROP,
            task=self.task.value,
            threshold=self.threshold,
        )

    @property
    def ignored(self) -> tuple[int, ...]:
        """The labels whose samples are dropped."""
        return () if self.ignore_index is None else (self.ignore_index,)

    def inputs(self, files: list[Path]) -> list[Path]:
        """Return every file that is read, which no output may replace."""
        named = (*(files or self._arrays()), *([] if self.classes is None else [self.classes]))
        return [path for path in named if os.path.isfile(path)]

    def _arrays(self) -> list[Path]:
        return [Path(key) for key in (self.true, self.pred, self.scores) if key is not None]

    def refuse_streams(self, option: str, files: list[Path]) -> None:
        """Raise UsageError for an option that reads twice, where something can't be."""
        from pttool.core.eval.reading.sources import is_stream

        for file in files or self._arrays():
            if is_stream("-" if str(file) == "-" else file):
                name = "standard input" if str(file) == "-" else str(file)
                raise UsageError(f"{option} reads twice, which {name} can't", "save it to a file")

    def refuse_multilabel(self, option: str) -> None:
        """Raise UsageError for an option of confusions where a sample has several labels."""
        if self.task is Task.MULTILABEL:
            raise UsageError(
                f"{option}: needs one class per sample",
                "of several labels none is taken for another: leave it out",
            )
