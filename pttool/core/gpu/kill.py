"""Free GPUs by ending the processes on them, and say what became of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pttool.core.gpu.holders import find_holders
from pttool.core.gpu.proc import is_orphan
from pttool.core.gpu.selection import select
from pttool.core.gpu.signals import Outcome, end
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.targets import Target, described, find_targets, refusal, service_reason
from pttool.core.gpu.types import Gpu, MigInstance
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, PttoolError, UnavailableError

# Shows a person what is going to be done, line by line, and returns the answer.
Confirm = Callable[[Sequence[str]], bool]
Decision = tuple[str, str | None]

WOULD_END = "would_end"
LEFT_ALONE = "left_alone"
ENDED = (Outcome.TERMINATED, Outcome.KILLED, Outcome.GONE, Outcome.REUSED)
REFUSED = (Outcome.FORBIDDEN, Outcome.NOT_PERMITTED)
FIELDS = (
    "pid", "gpus", "user", "command", "memory_bytes", "hidden", "orphan", "outcome", "reason",
)  # fmt: skip
COLUMNS = (
    Column("pid", "PID"),
    Column("gpus", "GPU", "list"),
    Column("user", "User"),
    Column("memory_bytes", "Memory", "bytes"),
    Column("outcome", "Outcome"),
    Column("reason", "Reason"),
    Column("command", "Command"),
)
FOOTER = (
    Column("processes", "Processes", "count"),
    Column("ended", "Ended", "count"),
    Column("refused", "Refused", "count"),
)


def kill(
    names: Sequence[str] = (),
    *,
    pid: int | None = None,
    hidden: bool = False,
    grace_s: float,
    confirm: Confirm | None,
) -> Report:
    """End the processes on the GPUs named, on all of them without a name; a row for each.

    Those that NVML lists; with `hidden` also those that it doesn't, but that have the device open,
    or without a name only nvidiactl or nvidia-uvm; with `pid` that one alone, of either kind. Each
    gets SIGTERM, and SIGKILL `grace_s` seconds later. Nothing is signalled where `confirm` says no,
    or is None: a dry run.

    The report fails where a process may not be ended or outlives SIGKILL, or a GPU's processes are
    unknown. Raises UsageError for a name that is no GPU, CheckFailedError for a `pid` on none of
    them, NoDriverError without GPUs, UnavailableError on a kernel without pidfds.
    """
    snapshot = take_snapshot()
    gpus = select(snapshot.gpus, names)
    holders = find_holders()
    found = find_targets(gpus, snapshot, holders, everywhere=not names)
    targets = [target for target in found if _is_meant(target, pid, hidden)]
    if pid is not None and not targets:
        raise CheckFailedError(f"PID {pid} is on none of these GPUs", "pttool gpu ps lists all")
    decisions = {target.pid: _decide(target, is_named=pid is not None) for target in targets}
    doomed = [target for target in targets if decisions[target.pid][0] == WOULD_END]
    is_real = confirm is not None and (not doomed or confirm(_plan(doomed, grace_s)))
    if is_real:
        outcomes = end([target.process for target in doomed if target.process], grace_s)
        decisions |= {ended: (outcome, None) for ended, outcome in outcomes.items()}
    items = [_item(target, *decisions[target.pid]) for target in targets]
    notes = [*_notes(items, is_real=is_real)]
    if hidden and holders.note is not None:
        notes.append(holders.note)
    failure = _failure(items, gpus)
    return Report(FIELDS, COLUMNS, items, _summary(items), FOOTER, tuple(notes), failure)


def _is_meant(target: Target, pid: int | None, hidden: bool) -> bool:
    if pid is not None:
        return target.pid == pid
    return target.is_listed or (hidden and target.is_hidden)


def _decide(target: Target, *, is_named: bool) -> Decision:
    reason = refusal(target)
    if reason is not None:
        return Outcome.FORBIDDEN, reason
    reason = None if is_named else service_reason(target)
    return (WOULD_END, None) if reason is None else (LEFT_ALONE, reason)


def _plan(doomed: Sequence[Target], grace_s: float) -> list[str]:
    return [*map(described, doomed), f"SIGTERM to each, SIGKILL after {grace_s:g} s"]


def _item(target: Target, outcome: str, reason: str | None) -> dict[str, Any]:
    process = target.process
    return {
        "pid": target.pid,
        "gpus": list(target.gpus),
        "user": None if process is None else process.user,
        "command": None if process is None else process.command,
        "memory_bytes": target.memory_bytes,
        "hidden": target.is_hidden,
        "orphan": process is not None and is_orphan(process),
        "outcome": str(outcome),
        "reason": reason,
    }


def _summary(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    outcomes = [item["outcome"] for item in items]
    return {
        "processes": len(items),
        "ended": sum(outcome in ENDED for outcome in outcomes),
        "refused": sum(outcome in REFUSED for outcome in outcomes),
    }


def _notes(items: Sequence[Mapping[str, Any]], *, is_real: bool) -> Iterator[str]:
    if not items:
        yield "no process to end"
    elif not is_real and any(item["outcome"] == WOULD_END for item in items):
        yield "nothing was signalled: --yes ends these processes"


def _failure(items: Sequence[Mapping[str, Any]], gpus: Sequence[Gpu]) -> PttoolError | None:
    """Return what is left to do: of several things, what only another user or place can do."""
    refused = [item for item in items if item["outcome"] in REFUSED]
    if refused:
        said = "; ".join(
            f"PID {item['pid']}: {item['reason'] or item['outcome']}" for item in refused
        )
        return UnavailableError(f"not signalled: {said}")
    left = [str(item["pid"]) for item in items if item["outcome"] == Outcome.SURVIVED]
    if left:
        return CheckFailedError(
            f"still alive after SIGKILL: PID {', '.join(left)}",
            "they wait in the driver: reset the GPU (pttool gpu reset) or reboot",
        )
    unknown = [f"GPU {gpu.index} ({error})" for gpu in gpus if (error := _why_unlisted(gpu))]
    if unknown:
        said = ", ".join(unknown)
        return CheckFailedError(f"processes can't be listed: {said}", "see: pttool gpu info")
    return None


def _why_unlisted(gpu: Gpu) -> str | None:
    """Return why the processes of a GPU, or of one of its MIG instances, are unknown, if so."""
    devices: tuple[Gpu | MigInstance, ...] = (gpu, *gpu.instances)
    errors = (each.errors["processes"] for each in devices if each.processes is None)
    return next(errors, None)
