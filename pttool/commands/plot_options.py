"""Where a plot goes, and how it is written: shared by the commands that draw one."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from pttool.errors import UsageError
from pttool.options import Force, FormatOptions
from pttool.output import (
    SUFFIXES,
    Output,
    choose_output,
    choose_text_output,
    emit,
    emit_document,
    emit_text,
    note,
)
from pttool.tables import USUAL_WIDTH, Paper

if TYPE_CHECKING:
    from pttool.core.plots.panels import Plot
    from pttool.core.report import Report

PICTURES = (".png", ".svg")
Log = Annotated[bool, Option("--log", help="Make the y axis logarithmic.")]


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where a plot goes: a picture, or else what `output` says, whose table is a drawing."""

    output: Output
    picture: Path | None

    def emit(self, command: str, plot: "Plot", report: "Report") -> None:
        """Write the plot or its points, the notes on stderr, and raise the report's failure."""
        if self.picture is not None:
            from pttool.core.plots.picture import picture

            emit_text(picture(plot, self.picture.suffix.lower()[1:]), self.picture)
            for text in report.notes:
                note(text)
            if report.failure is not None:
                raise report.failure
        elif self.output.is_table:
            emit_document([_drawn(plot, self.output)], report, self.output)
        else:
            emit(command, report, self.output)


@dataclass(frozen=True, slots=True)
class PlotOptions(FormatOptions):
    """How a plot, or its points, are written, and where."""

    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write a picture to FILE (.png, .svg), a drawing (.txt), or the points (.json, "
            ".ndjson, .csv, .tsv).",
            show_default=False,
        ),
    ] = None
    force: Force = False

    def choose(self, inputs: Sequence[Path] = ()) -> Canvas:
        """Return where the plot goes; raises UsageError for two formats or a hopeless FILE."""
        path, is_picture = self.output, False
        known = (*PICTURES, *SUFFIXES)
        if path is not None and path.suffix.lower() not in known and not self.asked:
            raise UsageError(f"{path}: the suffix names no format", f"end it in {' '.join(known)}")
        if path is not None and path.suffix.lower() in PICTURES:
            if self.asked:
                message = f"two formats at once: {self.asked[0]} and {path.suffix[1:]}"
                raise UsageError(message, "give one of them")
            path = choose_text_output(path, PICTURES, force=self.force, inputs=inputs)
            is_picture = True
        output = choose_output(
            self.asked,
            header=not self.no_header,
            path=None if is_picture else path,
            force=self.force,
            inputs=inputs,
        )
        return Canvas(output, path if is_picture else None)


def _drawn(plot: "Plot", output: Output) -> str:
    from pttool.core.plots.terminal import draw

    paper = Paper("utf-8") if output.path else Paper.of_descriptor(1, _encoding())
    width = paper.width or USUAL_WIDTH
    return draw(plot, width=width, colour=paper.colour, ascii_only=paper.is_narrow)


def _encoding() -> str:
    # A terminal that can do nothing (TERM=dumb) is seldom one that has braille.
    if os.environ.get("TERM") == "dumb":
        return "ascii"
    return "utf-8" if sys.stdout is None else sys.stdout.encoding
