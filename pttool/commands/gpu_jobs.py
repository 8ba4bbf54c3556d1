"""The verbs of `pttool gpu` that act: run a job, end processes, reset."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pttool.commands.gpu_options import ConditionOptions, Devices, emit_found, seconds
from pttool.options import OutputOptions
from pttool.output import note, talk

if TYPE_CHECKING:
    from pttool.core.gpu.kill import Confirm

Yes = Annotated[bool, Option("--yes", help="Do it without asking, and without a terminal.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only tell what would be done.")]
Grace = Annotated[float, seconds("--grace", "Seconds between SIGTERM and SIGKILL.")]


def run(
    command: Annotated[
        list[str],
        Argument(
            metavar="CMD...",
            help="The command and its arguments; -- may stand before it.",
            show_default=False,
        ),
    ],
    *,
    conditions: ConditionOptions,
    timeout: Annotated[
        float | None,
        seconds(
            "--timeout", "Give up after S seconds of waiting; 0 doesn't wait at all.", most=None
        ),
    ] = None,
) -> None:
    """Run a command on GPUs that no other `gpu run` has, as soon as there are some.

    Waits until the conditions hold, locks the GPUs, and becomes the command, with
    CUDA_VISIBLE_DEVICES set to their UUIDs. The locks last until the command is dead,
    however it dies, and what it left running in the background too. The exit code is the command's;
    1 if --timeout came first, or the conditions can never hold.

    Examples:
        pttool gpu run -- python train.py
        pttool gpu run -n 2 --min-free 20GiB --timeout 3600 -- torchrun --nproc-per-node 2 train.py
        for s in 1 2 3 4 5 6 7 8 9; do pttool gpu run -- python train.py --seed $s & done; wait
    """
    wanted = conditions.conditions()
    from pttool.core.gpu.run import run as become

    become(command, wanted, timeout_s=timeout, say=note)


def kill(
    *,
    gpu: Devices = (),  # type: ignore[assignment]
    pid: Annotated[
        int | None,
        Option("--pid", metavar="P", min=2, help="Only this process on a GPU.", show_default=False),
    ] = None,
    hidden: Annotated[
        bool,
        Option("--hidden", help="Also who holds the device open without being listed."),
    ] = False,
    grace: Grace = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: OutputOptions,
) -> None:
    """End the processes on GPUs: SIGTERM, and SIGKILL to what is left after --grace.

    A terminal is asked first; without one, and without --yes, nothing is done but told. Never
    ended: another user's processes (root may), those of another PID namespace, pttool itself and
    what it runs under, a PID that was given to another process since, and, unless named by --pid,
    the display and NVIDIA's services. The exit code is 4 if a process was refused, 1 if one is
    still alive.

    Examples:
        pttool gpu kill -i 0
        pttool gpu kill --pid 12345 --yes
        pttool gpu kill -i 0,1 --hidden --dry-run
    """
    destination = output.choose()
    from pttool.core.gpu.kill import kill as end

    confirm = _confirmation(yes, dry_run, "End them?")
    emit_found(
        "gpu kill",
        lambda: end(gpu, pid=pid, hidden=hidden, grace_s=grace, confirm=confirm),
        destination,
    )


def reset(
    *,
    gpu: Devices = (),  # type: ignore[assignment]
    all: Annotated[bool, Option("--all", help="Every GPU of the machine.")] = False,
    kill: Annotated[
        bool,
        Option("--kill", help="End the processes on them first, and give MIG instances up."),
    ] = False,
    grace: Grace = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: OutputOptions,
) -> None:
    """Reset GPUs with nvidia-smi, but never one that is in use.

    Refused while a GPU has processes, open descriptors or MIG instances, unless --kill is given.
    What nvidia-smi refuses is told, with what is known to be in its way. It takes root. A terminal
    is asked first; without one, and without --yes, nothing is done but told.

    Examples:
        sudo pttool gpu reset -i 0
        sudo pttool gpu reset -i 0 --kill --yes
        pttool gpu reset --all --dry-run
    """
    destination = output.choose()
    from pttool.core.gpu.reset import reset as reset_gpus

    confirm = _confirmation(yes, dry_run, "Do this?")
    emit_found(
        "gpu reset",
        lambda: reset_gpus(gpu, every=all, kill=kill, grace_s=grace, confirm=confirm),
        destination,
    )


def _confirmation(yes: bool, dry_run: bool, question: str) -> "Confirm | None":
    """Return what asks before anything is done: nothing with --yes, None for a dry run."""
    if dry_run:
        return None
    if yes:
        return lambda lines: True
    has_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return (lambda lines: _ask(lines, question)) if has_terminal else None


def _ask(lines: Sequence[str], question: str) -> bool:
    from pttool.values import printable

    for line in lines:
        talk(printable(line))
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
