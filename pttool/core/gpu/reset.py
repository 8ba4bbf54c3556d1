"""Reset GPUs, but never one that is in use, nor one that nobody named."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pttool.core.gpu.holders import find_holders
from pttool.core.gpu.kernel_log import has_fallen_off
from pttool.core.gpu.kill import Confirm
from pttool.core.gpu.nvidia_smi import ask, reset_command
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
FIELDS = ("index", "uuid", "name", "pci_bus_id", "outcome", "reasons")
COLUMNS = (
    Column("index", "GPU"),
    Column("name", "Name"),
    Column("pci_bus_id", "Bus", optional=True),
    Column("outcome", "Outcome"),
    Column("reasons", "Reasons", "list"),
)
REBOOT = "it has fallen off the bus (Xid 79): only a reboot brings it back"


@dataclass(frozen=True, slots=True)
class Situation:
    """GPUs to reset, the processes on them, and by index what stands against each reset."""

    gpus: tuple[Gpu, ...]
    targets: list[Target]
    obstacles: dict[int, list[str]]


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
    where no GPU is named, UnavailableError without nvidia-smi, NoDriverError without a driver.
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
    plan = [*(f"end first: {described(target)}" for target in found.targets), " ".join(command)]
    if confirm is None or not confirm(plan):
        notes = (*(f"would {line}" for line in plan[:-1]), f"would run: {plan[-1]}")
        reminder = "nothing was reset: --yes does it"
        return _report(found, WOULD_RESET, (*notes, nvlink_rule(found.gpus), reminder))
    if found.targets:
        end([target.process for target in found.targets if target.process], grace_s)
        found = _look(names, may_end=False, may_lose_mig=True)
        if any(found.obstacles.values()):
            return _obstructed(found, is_killing=True)
    return _reset(found, command)


def _look(names: Sequence[str], *, may_end: bool, may_lose_mig: bool) -> Situation:
    snapshot = take_snapshot()  # closes NVML, or pttool would be in the way of a reset itself
    gpus = select(snapshot.gpus, names)
    targets = find_targets(gpus, snapshot, find_holders())
    obstacles = {
        gpu.index: [
            *_broken(gpu),
            *(_in_use(target, may_end) for target in targets if gpu.index in target.gpus),
            *([] if may_lose_mig else _instances(gpu)),
        ]
        for gpu in gpus
    }
    kept = {index: [reason for reason in found if reason] for index, found in obstacles.items()}
    return Situation(gpus, targets, kept)


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


def _instances(gpu: Gpu) -> Iterator[str]:
    if gpu.instances:
        yield f"{len(gpu.instances)} MIG instances would be lost"


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
    answer = ask(command)
    if not answer.is_reset:
        which = ", ".join(str(gpu.index) for gpu in found.gpus)
        message = f"nvidia-smi did not reset GPU {which}: {answer.text}"
        obstacles = {gpu.index: [answer.text] for gpu in found.gpus}
        return _report(
            Situation(found.gpus, found.targets, obstacles),
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
    items: list[dict[str, Any]] = [
        {
            "index": gpu.index,
            "uuid": gpu.uuid,
            "name": gpu.name,
            "pci_bus_id": gpu.pci_bus_id,
            "outcome": outcome,
            "reasons": found.obstacles[gpu.index],
        }
        for gpu in found.gpus
    ]
    summary = {"gpus": len(items), "reset": len(items) if outcome == RESET else 0}
    return Report(FIELDS, COLUMNS, items, summary, (), tuple(notes), failure)
