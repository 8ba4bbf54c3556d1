"""The options of `pttool eval`: what is read, and how the report is written."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from pttool.errors import UsageError
from pttool.options import Force
from pttool.output import DOCUMENT_SUFFIXES, SUFFIXES, Format, Output, choose_output

if TYPE_CHECKING:
    from pttool.core.eval.report import Options
    from pttool.core.eval.types import Predictions

# A terminal shows this many classes when there are more than 40.
WORST_OF_MANY = 20


class ConfusedBy(StrEnum):
    """Which way round confusions are told."""

    ROW = "row"
    COLUMN = "column"


class MacroOver(StrEnum):
    """Which classes a macro average is over."""

    SEEN = "seen"
    ALL = "all"


class Sort(StrEnum):
    """What the classes are sorted by."""

    NAME = "name"
    LABEL = "label"
    SUPPORT = "support"
    PRECISION = "precision"
    RECALL = "recall"
    F1 = "f1"


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

    def open(self, files: list[Path]) -> "Predictions":
        """Return the predictions in the files; raises as open_predictions does."""
        from pttool.core.eval.predictions import open_predictions

        return open_predictions(
            ["-" if str(file) == "-" else file for file in files],
            true=self.true,
            pred=self.pred,
            scores=self.scores,
            classes=self.classes,
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
            drop_nan=self.nan is OnNaN.DROP,
            task=self.task.value,
            threshold=self.threshold,
        )

    def refuse_multilabel(self, option: str) -> None:
        """Raise UsageError for an option of confusions where a sample has several labels."""
        if self.task is Task.MULTILABEL:
            raise UsageError(
                f"{option}: needs one class per sample",
                "of several labels none is taken for another: leave it out",
            )


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How the report is written, and where."""

    json: Annotated[bool, Option("--json", help="Write one JSON document.")] = False
    ndjson: Annotated[bool, Option("--ndjson", help="Write one JSON object per class.")] = False
    csv: Annotated[bool, Option("--csv", help="Write the CSV for spreadsheets.")] = False
    tsv: Annotated[bool, Option("--tsv", help="Write the classes as TSV, raw.")] = False
    md: Annotated[bool, Option("--md", help="Write a Markdown table.")] = False
    latex: Annotated[bool, Option("--latex", help="Write a LaTeX tabular (booktabs).")] = False
    html: Annotated[bool, Option("--html", help="Write one page with a heat map.")] = False
    excel: Annotated[
        bool, Option("--excel", help="Make the CSV one for Excel: BOM, CRLF, no formulas.")
    ] = False
    digits: Annotated[
        int, Option("--digits", metavar="N", min=0, max=17, help="Decimals in documents.")
    ] = 3
    no_header: Annotated[bool, Option("--no-header", help="Leave out the header.")] = False
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            show_default=False,
            help="Write to FILE: .json, .ndjson, .csv, .tsv, .txt, .md, .tex or .html.",
        ),
    ] = None
    force: Force = False

    def choose(self, files: list[Path]) -> Output:
        """Return the output asked for; raises UsageError for two formats or a hopeless FILE."""
        asked = [format for format in Format if getattr(self, format.value, False)]
        if self.excel and not asked:
            asked = [Format.CSV]
        return choose_output(
            asked,
            header=not self.no_header,
            path=self.output,
            force=self.force,
            suffixes={**SUFFIXES, **DOCUMENT_SUFFIXES},
            inputs=files,
        )


@dataclass(frozen=True, slots=True)
class GateOptions:
    """Intervals, and what makes the exit code 1."""

    ci: Annotated[
        float | None,
        Option(
            "--ci",
            metavar="LEVEL",
            min=0.5,
            max=0.9999,
            show_default=False,
            help="Confidence intervals at this level, as 0.95.",
        ),
    ] = None
    seed: Annotated[int, Option("--seed", metavar="N", help="Seed of the bootstrap.")] = 0
    fail_under: Annotated[
        list[str],
        Option(
            "--fail-under",
            metavar="METRIC[:CLASS]=VALUE",
            show_default=False,
            help="Exit with 1 if a metric is lower; repeatable.",
        ),
    ] = ()  # type: ignore[assignment]
    fail_on_ci: Annotated[
        bool, Option("--fail-on-ci", help="Hold gates against the lower end of the interval.")
    ] = False


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """What is computed, and which classes are listed in which order."""

    confused_by: Annotated[
        ConfusedBy, Option("--confused-by", help="Tell what a class is taken for, or what for it.")
    ] = ConfusedBy.ROW
    macro: Annotated[
        MacroOver, Option("--macro", help="Average over classes seen, or over all.")
    ] = MacroOver.SEEN
    seen_only: Annotated[bool, Option("--seen-only", help="List only classes that occur.")] = False
    worst: Annotated[
        int | None,
        Option(
            "--worst",
            metavar="N",
            min=1,
            help="List the N classes with the lowest F1.",
            show_default=False,
        ),
    ] = None
    sort: Annotated[
        Sort | None,
        Option("--sort", help="By name or label, or the largest first.", show_default=False),
    ] = None
    pairs: Annotated[
        int, Option("--pairs", metavar="N", min=0, help="Tell the N most confused pairs.")
    ] = 0
    iou: Annotated[bool, Option("--iou", help="Add the intersection over union of each class.")] = (
        False
    )
    topk: Annotated[str, Option("--topk", metavar="K,...", help="Top-k accuracies.")] = "1,5"
    ece_bins: Annotated[
        int, Option("--ece-bins", metavar="N", min=1, help="Bins of the calibration error.")
    ] = 15

    def parse(self, read: ReadOptions, gates: GateOptions, *, for_people: bool) -> "Options":
        """Return what is to be computed; raises UsageError for what can't be read."""
        if self.pairs:
            read.refuse_multilabel("--pairs")
        if self.confused_by is not ConfusedBy.ROW:
            read.refuse_multilabel("--confused-by")
        from pttool.core.eval.report import Options

        return Options.parse(
            confused_by=self.confused_by.value,
            macro=self.macro.value,
            seen_only=self.seen_only,
            worst=self.worst,
            worst_of_many=WORST_OF_MANY if for_people else None,
            sort=None if self.sort is None else self.sort.value,
            pairs=self.pairs,
            iou=self.iou or read.task is Task.PIXELS,
            topk=self.topk,
            ece_bins=self.ece_bins,
            ignored=() if read.ignore_index is None else (read.ignore_index,),
            confidence=gates.ci,
            seed=gates.seed,
            gates=gates.fail_under,
            gates_on_interval=gates.fail_on_ci,
        )
