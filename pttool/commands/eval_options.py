"""The options of `pttool eval`: what is computed, and how the report is written."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from pttool.commands.eval_reading import ReadOptions, Task
from pttool.errors import UsageError
from pttool.options import Force
from pttool.output import DOCUMENT_SUFFIXES, SUFFIXES, Format, Output, choose_output

if TYPE_CHECKING:
    from pttool.core.eval.report import Options

# A terminal shows this many classes when there are more than 40.
WORST_OF_MANY = 20
MATRIX_SUFFIXES = (".csv", ".npz", ".png")
# Formats without a place for pairs of their own: notes tell them.
WITHOUT_PAIRS = (Format.CSV, Format.TSV, Format.NDJSON, Format.LATEX)

Seed = Annotated[int, Option("--seed", metavar="N", min=0, help="Seed of the bootstrap.")]


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

    def choose(self, inputs: Sequence[Path], matrix: Path | None) -> Output:
        """Return the output asked for; raises UsageError for two formats or a hopeless FILE.

        --excel is of a CSV: the report's, or that of the matrix.
        """
        asked = [format for format in Format if getattr(self, format.value, False)]
        if self.excel and not asked and self.output is None:
            asked = [Format.CSV]
        chosen = choose_output(
            asked,
            header=not self.no_header,
            path=self.output,
            force=self.force,
            suffixes={**SUFFIXES, **DOCUMENT_SUFFIXES},
            inputs=inputs,
        )
        if chosen.path and matrix and os.path.realpath(chosen.path) == os.path.realpath(matrix):
            message = f"{matrix}: both the report and the matrix would be written to it"
            raise UsageError(message, "give -o and --matrix a file each")
        is_csv = chosen.format is Format.CSV or (matrix and matrix.suffix.lower() == ".csv")
        if self.excel and not is_csv:
            message = f"--excel: is of a CSV, and {chosen.format.value} was asked for"
            raise UsageError(message, "give --csv, or leave --excel out")
        return chosen


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
    seed: Seed = 0
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
        bool,
        Option("--fail-on-ci", help="Hold gates against the lower end of the interval (0.95)."),
    ] = False

    def check(self) -> None:
        """Raise UsageError for --fail-on-ci without a gate."""
        if self.fail_on_ci and not self.fail_under:
            message = "--fail-on-ci: there is no gate to hold against an interval"
            raise UsageError(message, "add one: --fail-under accuracy=0.9")


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
    topk: Annotated[
        str | None,
        Option(
            "--topk", metavar="K,...", help="Top-k accuracies of scores (1,5).", show_default=False
        ),
    ] = None
    ece_bins: Annotated[
        int | None,
        Option(
            "--ece-bins",
            metavar="N",
            min=1,
            max=1_000_000,
            help="Bins of the calibration error of scores (15).",
            show_default=False,
        ),
    ] = None

    def parse(self, read: ReadOptions, gates: GateOptions, output: Output) -> "Options":
        """Return what is to be computed; raises UsageError for what can't be read."""
        gates.check()
        for option, value in (("--topk", self.topk), ("--ece-bins", self.ece_bins)):
            if value is not None:
                read.refuse_multilabel(option)
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
            worst_of_many=WORST_OF_MANY if output.is_for_people else None,
            sort=None if self.sort is None else self.sort.value,
            pairs=self.pairs,
            notes_pairs=output.format in WITHOUT_PAIRS,
            iou=self.iou or read.task is Task.PIXELS,
            topk=self.topk,
            ece_bins=self.ece_bins,
            ignored=read.ignored,
            confidence=gates.ci,
            seed=gates.seed,
            gates=gates.fail_under,
            gates_on_interval=gates.fail_on_ci,
        )


def check_matrix(matrix: Path | None, read: ReadOptions, *, normalize: bool) -> None:
    """Raise UsageError for a matrix that the task has not, and for --normalize without effect."""
    if matrix is not None:
        read.refuse_multilabel("--matrix")
    if normalize and (matrix is None or matrix.suffix.lower() != ".csv"):
        held = "no --matrix was asked for" if matrix is None else f"{matrix} is none"
        message = f"--normalize: is of a .csv matrix, and {held}"
        raise UsageError(message, "add --matrix FILE.csv (a picture always shows shares)")
