"""The verbs of `pttool gpu` that show."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from pttool.commands.gpu_options import Devices, emit_found, seconds
from pttool.commands.gpu_watching import watch as watch_report
from pttool.errors import UsageError
from pttool.options import OutputOptions

if TYPE_CHECKING:
    from pttool.core.report import Report


def info(
    *,
    gpu: Devices = (),  # type: ignore[assignment]
    visible: Annotated[
        bool, Option("--visible", help="Only what CUDA_VISIBLE_DEVICES lets through, in its order.")
    ] = False,
    watch: Annotated[
        float | None,
        seconds("--watch", "Show again every S seconds; in a pipe, as NDJSON.", least=0.1),
    ] = None,
    torch: Annotated[
        bool, Option("--torch", help="Ask torch, in a process of its own, what it sees.")
    ] = False,
    output: OutputOptions,
) -> None:
    """Show GPUs: memory, load, processes, MIG instances, and what can't be read and why.

    Asks the NVIDIA driver itself; neither torch nor nvidia-smi is needed. What can't be read is
    unknown, never 0. The exit code is 1 if a GPU doesn't answer; the others are shown.

    Examples:
        pttool gpu info
        pttool gpu info --watch 2
        pttool gpu info --json | jq '.items[] | {index, free: .memory.free_bytes}'
        CUDA_VISIBLE_DEVICES=1,0 pttool gpu info --visible --torch
    """
    destination = output.choose()
    if torch and watch is not None:
        raise UsageError(
            "--torch and --watch at once", "torch takes seconds to answer: ask it once"
        )
    if torch:
        from pttool.core.gpu.torch_info import info_with_torch as describe
    else:
        from pttool.core.gpu.info import info as describe

    def find() -> "Report":
        return describe(gpu, visible=visible)

    if watch is None:
        emit_found("gpu info", find, destination)
    else:
        watch_report(find, watch, output)


def ps(*, gpu: Devices = (), output: OutputOptions) -> None:  # type: ignore[assignment]
    """List who holds which GPU, also processes that the driver doesn't list.

    Those marked hidden have an open descriptor of /dev/nvidia*: they hold the device open, as
    data-loader workers that a killed run left behind do, which says nothing of memory. Orphans
    outlived the process that started them. Other users' descriptors are seen by root only.

    Examples:
        pttool gpu ps
        pttool gpu ps -i 0 --json | jq '.items[] | select(.hidden) | .pid'
    """
    destination = output.choose()
    from pttool.core.gpu.ps import ps as list_processes

    emit_found("gpu ps", lambda: list_processes(gpu), destination)
