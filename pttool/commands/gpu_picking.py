"""The verbs of `pttool gpu` that choose."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from pttool.commands.gpu_options import ConditionOptions, emit_found, seconds
from pttool.core.gpu.style import Style
from pttool.options import FormatOptions
from pttool.output import Output, emit_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from pttool.core.report import Report


Written = Annotated[
    Style,
    Option("--format", help="UUIDs, indices by PCI bus, or a line that exports the UUIDs."),
]


def pick(
    *, conditions: ConditionOptions, format: Written = Style.UUID, output: FormatOptions
) -> None:
    """Print free GPUs as CUDA_VISIBLE_DEVICES takes them, the one with the most free memory first.

    Free is a GPU where nobody computes, or with --min-free one with so much memory left; what
    pttool gpu run has booked is not. In MIG mode the instances are picked, never the GPU itself.
    With fewer than -n nothing is printed, and the exit code is 1.

    Examples:
        CUDA_VISIBLE_DEVICES=$(pttool gpu pick -n 2 --min-free 20GiB) python train.py
        eval "$(pttool gpu pick --format export)"
        pttool gpu pick -n 8 --max-util 5 --json | jq '.items[].name'
    """
    destination, wanted = output.to_stdout(), conditions.conditions()
    from pttool.core.gpu.pick import pick as pick_gpus

    _emit("gpu pick", lambda: pick_gpus(wanted, format), destination)


def wait(
    *,
    conditions: ConditionOptions,
    timeout: Annotated[
        float | None, seconds("--timeout", "Give up after S seconds.", most=None)
    ] = None,
    every: Annotated[float, seconds("--every", "Look every S seconds.", least=0.05)] = 2,
    format: Written = Style.UUID,
    output: FormatOptions,
) -> None:
    """Wait until GPUs are free, and print them as pttool gpu pick does.

    What can't come true by waiting, as more GPUs than there are, ends at once with exit code 1.
    Two that wait may be told of the same GPU: pttool gpu run waits and books.

    Examples:
        pttool gpu wait -n 4 && torchrun --nproc-per-node 4 train.py
        export CUDA_VISIBLE_DEVICES=$(pttool gpu wait --min-free 30GiB --timeout 3600)
    """
    destination, wanted = output.to_stdout(), conditions.conditions()
    from pttool.core.gpu.wait import wait as wait_for

    _emit(
        "gpu wait",
        lambda: wait_for(wanted, format, timeout_s=timeout, every_s=every),
        destination,
    )


def _emit(command: str, find: "Callable[[], Report]", output: Output) -> None:
    """Write for a shell what else would be a table."""
    if output.is_table:
        report = find()
        emit_document([f"{report.summary['text']}\n"], report, output)
    else:
        emit_found(command, find, output)
