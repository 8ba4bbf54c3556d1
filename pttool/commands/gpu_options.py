"""The options of `pttool gpu`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from pttool.core.report import Report
from pttool.data_formats import SCHEMA
from pttool.options import A_DAY_S, a_number
from pttool.output import Format, Output, emit, emit_document
from pttool.values import json_text

if TYPE_CHECKING:
    from pttool.core.gpu.picking import Conditions

Devices = Annotated[
    list[str],
    Option(
        "-i",
        "--gpu",
        metavar="IDS",
        help="These GPUs: indices as 0,2, or UUIDs, also of MIG instances; repeatable.",
        show_default=False,
    ),
]


def seconds(flag: str, help: str, *, least: float = 0, most: float | None = A_DAY_S) -> Any:
    """Return an option that takes seconds; without a `most` also inf, but never what is no number.

    What the system is told to wait must be finite: it counts in 32 bits of milliseconds.
    """
    return Option(flag, metavar="S", min=least, max=most, help=help, callback=a_number)


@dataclass(frozen=True, slots=True)
class ConditionOptions:
    """What a GPU must offer."""

    count: Annotated[
        int, Option("-n", "--count", metavar="N", min=1, help="How many GPUs: all or none.")
    ] = 1
    min_free: Annotated[
        str | None,
        Option(
            "--min-free",
            metavar="SIZE",
            help="Free memory that will do, as 20GiB or 20GB, whoever else computes there.",
            show_default=False,
        ),
    ] = None
    max_util: Annotated[
        int | None,
        Option(
            "--max-util",
            metavar="P",
            min=0,
            max=100,
            help="Most utilization in percent; 10 if not given, and unknown will then do.",
            show_default=False,
        ),
    ] = None
    visible: Annotated[
        bool, Option("--visible", help="Only GPUs that CUDA_VISIBLE_DEVICES lets through.")
    ] = False

    def conditions(self) -> "Conditions":
        """Return the conditions; raises UsageError for a SIZE that is none."""
        from pttool.core.gpu.picking import Conditions
        from pttool.core.sizes import parse_size

        free = None if self.min_free is None else parse_size(self.min_free)
        return Conditions(self.count, free, self.max_util, self.visible)


def emit_found(command: str, find: Callable[[], Report], output: Output) -> None:
    """Write what is found; without a driver, --json still gives a document that names the cause."""
    from pttool.core.gpu.nvml import NoDriverError

    try:
        report = find()
    except NoDriverError as error:
        if output.format is not Format.JSON:
            raise
        report = Report((), (), [], {"error": error.cause}, failure=error)
        document = {
            "schema": SCHEMA, "command": command, "error": error.cause, "message": error.message,
            "items": report.items, "summary": report.summary, "notes": report.notes,
        }  # fmt: skip
        emit_document([json_text(document) + "\n"], report, output)
    else:
        emit(command, report, output)
