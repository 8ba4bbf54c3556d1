"""Reset GPUs, but never one that is in use, nor one that nobody named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pttool.core.gpu.holders import find_holders
from pttool.core.gpu.kernel_log import has_fallen_off
from pttool.core.gpu.kill import LEFT_ALONE, WOULD_END, Confirm
from pttool.core.gpu.nvidia_smi import reset_command, run_reset
from pttool.core.gpu.reset_advice import blockers, nvlink_rule
from pttool.core.gpu.selection import select
from pttool.core.gpu.signals import end
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.targets import Target, described, find_targets, refusal, service_reason
from pttool.core.gpu.types import Gpu
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, PttoolError, UsageError

RESET = "reset"
WOULD_RESET = "would_reset"
REFUSED = "refused"
FIELDS = ("index", "uuid", "name", "pci_bus_id", "outcome", "reasons", "processes")
COLUMNS = (
    Column("index", "GPU"),
    Column("name", "Name"),
    Column("pci_bus_id", "Bus", optional=True),
    Column("outcome", "Outcome"),
    Column("reasons", "Reasons", "list"),
    Column("shown_processes", "Processes", "list"),
)
REBOOT = "it has fallen off the bus (Xid 79): only a reboot brings it back"


@dataclass(frozen=True, slots=True)
class Situation:
    """GPUs to reset, the processes on them, and by index what stands against each reset.

    `outcomes` are what became of processes by PID; the others were left alone.
    """

    gpus: tuple[Gpu, ...]
    targets: list[Target]
    obstacles: dict[int, list[str]]
    outcomes: Mapping[int, str] = field(default_factory=dict)


def reset(
    names: Sequence[str],
    *,
    every: bool,
    kill: bool,
    grace_s: float,
    confirm: Confirm | None,
) -> Report:
    """Reset the GPUs named, or `every` one, with nvidia-smi; a row for each.

    None is reset while one of them has processes, open descriptors or MIG instances. With `kill`
    its processes are ended first, as the verb does it, with SIGKILL after `grace_s` seconds, and
    its MIG instances are lost. Nothing is done where `confirm` says no, or is None: a dry run.

    The report fails where a reset is refused, by pttool or by nvidia-smi. Raises UsageError
    where no GPU is named, or a MIG instance, UnavailableError without nvidia-smi, NoDriverError
    without a driver.
    """
    if every == bool(names):
        raise UsageError(
            "-i and --all exclude each other" if every else "no GPU is named",
            "-i ID says which GPU; --all is every one, which nvidia-smi takes without -i",
        )
    found = _look(names, may_end=kill, may_lose_mig=kill)
    if any(found.obstacles.values()):
        return _obstructed(found, is_killing=kill)
    command = reset_command([_address(gpu) for gpu in found.gpus])
    plan = [
        *(f"end first: {described(target)}" for target in found.targets),
        *(f"lose {_instances(gpu)} of GPU {gpu.index}" for gpu in found.gpus if gpu.instances),
        f"run: {' '.join(command)}",
    ]
    if confirm is None or not confirm(plan):
        would_end = replace(found, outcomes={each.pid: WOULD_END for each in found.targets})
        notes = (*(f"would {line}" for line in plan), nvlink_rule(found.gpus))
        return _report(would_end, WOULD_RESET, (*notes, "nothing was reset: --yes does it"))
    if found.targets:
        outcomes = end([target.process for target in found.targets if target.process], grace_s)
        left = _look(names, may_end=False, may_lose_mig=True)
        found = replace(left, targets=found.targets, outcomes=outcomes)
        if any(found.obstacles.values()):
            return _obstructed(found, is_killing=True)
    return _reset(found, command)


def _look(names: Sequence[str], *, may_end: bool, may_lose_mig: bool) -> Situation:
    snapshot = take_snapshot()  # closes NVML, or pttool would be in the way of a reset itself
    gpus = select(snapshot.gpus, names)
    _refuse_narrowed(gpus)
    targets = find_targets(gpus, snapshot, find_holders(), everywhere=not names)
    obstacles = {
        gpu.index: [
            *_broken(gpu),
            *(_in_use(target, may_end) for target in _on(gpu, targets)),
            "" if may_lose_mig or not gpu.instances else f"its {_instances(gpu)} would be lost",
        ]
        for gpu in gpus
    }
    kept = {index: [reason for reason in found if reason] for index, found in obstacles.items()}
    return Situation(gpus, targets, kept)


def _refuse_narrowed(gpus: Sequence[Gpu]) -> None:
    for gpu in gpus:
        if gpu.is_narrowed:
            raise UsageError(
                f"-i {gpu.instances[0].uuid}: a MIG instance can't be reset by itself",
                f"-i {gpu.index} resets its GPU",
            )


def _on(gpu: Gpu, targets: Sequence[Target]) -> list[Target]:
    """Return the processes on a GPU; who has only the driver open may be on any."""
    return [target for target in targets if not target.gpus or gpu.index in target.gpus]


def _broken(gpu: Gpu) -> Iterator[str]:
    if gpu.fault is not None and has_fallen_off(gpu.pci_bus_id):
        yield REBOOT


def _in_use(target: Target, may_end: bool) -> str:
    """Return why a process keeps its GPU from being reset; empty where it is to be ended."""
    reason = refusal(target) if may_end else None
    reason = reason or service_reason(target)
    if reason is None:
        return "" if may_end else described(target)
    return f"{described(target)}, which {reason}"


def _instances(gpu: Gpu) -> str:
    count = len(gpu.instances)
    return f"{count} MIG instance{'s' * (count > 1)}"


def _address(gpu: Gpu) -> str:
    """Return what names a GPU to nvidia-smi for sure: indices may count in another order."""
    return gpu.pci_bus_id or gpu.uuid or str(gpu.index)


def _obstructed(found: Situation, *, is_killing: bool) -> Report:
    said = "; ".join(
        f"GPU {index}: {', '.join(reasons)}"
        for index, reasons in found.obstacles.items()
        if reasons
    )
    if any(REBOOT in reasons for reasons in found.obstacles.values()):
        hint = "reboot; if it comes back, have the GPU, its power and its slot looked at"
    elif is_killing:
        hint = "end what is left by its own means first"
    else:
        hint = "--kill ends the processes first, and gives MIG instances up"
    return _report(found, REFUSED, (), CheckFailedError(f"not reset: {said}", hint))


def _reset(found: Situation, command: Sequence[str]) -> Report:
    answer = run_reset(command)
    if not answer.is_reset:
        which = ", ".join(str(gpu.index) for gpu in found.gpus)
        message = f"nvidia-smi did not reset GPU {which}: {answer.text}"
        obstacles = {gpu.index: [answer.text] for gpu in found.gpus}
        return _report(
            replace(found, obstacles=obstacles),
            REFUSED,
            (nvlink_rule(found.gpus),),
            CheckFailedError(message, blockers(found.gpus)),
        )
    after = select(take_snapshot().gpus, [str(gpu.index) for gpu in found.gpus])
    bad = [f"GPU {gpu.index} ({gpu.fault})" for gpu in after if gpu.fault is not None]
    failure = CheckFailedError(f"reset, but still broken: {', '.join(bad)}", "reboot")
    return _report(found, RESET, (f"nvidia-smi: {answer.text}",), failure if bad else None)


def _report(
    found: Situation,
    outcome: str,
    notes: Sequence[str] = (),
    failure: PttoolError | None = None,
) -> Report:
    items = [_item(gpu, found, outcome) for gpu in found.gpus]
    summary = {"gpus": len(items), "reset": len(items) if outcome == RESET else 0}
    return Report(FIELDS, COLUMNS, items, summary, (), tuple(notes), failure)


def _item(gpu: Gpu, found: Situation, outcome: str) -> dict[str, Any]:
    processes = [
        {
            "pid": target.pid,
            "user": target.process and target.process.user,
            "command": target.process and target.process.command,
            "outcome": str(found.outcomes.get(target.pid, LEFT_ALONE)),
        }
        for target in _on(gpu, found.targets)
    ]
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "pci_bus_id": gpu.pci_bus_id,
        "outcome": outcome,
        "reasons": found.obstacles[gpu.index],
        "processes": processes,
        "shown_processes": {each["pid"]: each["outcome"] for each in processes},
    }
