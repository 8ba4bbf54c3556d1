"""The processes on some GPUs, and which of them may not be ended, and why."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pttool.core.gpu.holders import Holders
from pttool.core.gpu.proc import ProcessEntry, is_in_container, read_process
from pttool.core.gpu.services import service_of
from pttool.core.gpu.signals import forbidden
from pttool.core.gpu.types import Gpu, Snapshot
from pttool.core.sysroot import rooted


@dataclass(frozen=True, slots=True)
class Target:
    """A process on GPUs; `process` is None where its PID is none here.

    NVML lists it on these GPUs (`is_listed`, with the sum of its memory there), or it has their
    device open (`holds_device`, None without a device file to tell by), or both. A hidden one is in
    NVML's list of no GPU at all. `devices` are all files that it has open, as nvidia0 or nvidiactl;
    with those of no GPU alone, `gpus` is empty.
    """

    pid: int
    process: ProcessEntry | None
    gpus: tuple[int, ...]
    memory_bytes: int | None
    is_listed: bool
    is_hidden: bool
    holds_device: bool | None
    devices: tuple[str, ...]


def find_targets(
    gpus: Sequence[Gpu], snapshot: Snapshot, holders: Holders, *, everywhere: bool
) -> list[Target]:
    """Return every process on these GPUs of a snapshot by PID: those listed, and other holders.

    Of a GPU that is narrowed to MIG instances, only those listed there. `everywhere` adds the
    holders of no GPU's own device, who are in the way of all.
    """
    listed = {gpu.index: {each.pid for each in gpu.all_processes} for gpu in gpus}
    holding = {
        gpu.index: {holder.process.pid for holder in holders.of_minor(gpu.minor)} for gpu in gpus
    }
    devices = {holder.process.pid: holder.devices for holder in holders.found}
    pids = {pid for found in listed.values() for pid in found}
    pids |= {pid for gpu in gpus if not gpu.is_narrowed for pid in holding[gpu.index]}
    if everywhere:
        pids |= {holder.process.pid for holder in holders.of_no_gpu(snapshot.gpus)}
    targets: list[Target] = []
    for pid in sorted(pids):
        on = [gpu for gpu in gpus if pid in listed[gpu.index]]
        held = [gpu for gpu in gpus if pid in holding[gpu.index]]
        targets.append(
            Target(
                pid=pid,
                process=read_process(pid),
                gpus=tuple(gpu.index for gpu in (on or held)),
                memory_bytes=_memory_of(pid, on),
                is_listed=bool(on),
                is_hidden=pid not in snapshot.pids,
                holds_device=bool(held) or (False if _have_devices(on) else None),
                devices=devices.get(pid, ()),
            )
        )
    return targets


def refusal(target: Target) -> str | None:
    """Return why a process may not be ended, None where it may."""
    reason = forbidden(target.pid)
    if reason is not None:
        return reason
    process = target.process
    if process is None:
        return "not visible here: it is of another PID namespace (container or host), or gone"
    own = read_process(os.getpid())
    if own is not None and process.namespace not in (own.namespace, None):
        return "in another PID namespace: end it in its container"
    # NVML may tell the host's PIDs, which in a container are those of other processes.
    if is_in_container() and target.holds_device is False:
        return "in another PID namespace: the process with this PID here has no GPU open"
    if os.geteuid() not in (0, process.uid):
        return f"belongs to {process.user}: root may end it"
    return None


def service_reason(target: Target) -> str | None:
    """Return why a service or the display is not ended unless it is named, and what stops it."""
    service = None if target.process is None else service_of(target.process.name)
    return None if service is None else f"belongs to {service.name}: {service.remedy}"


def described(target: Target) -> str:
    """Return what a person needs to recognise a process, on one line."""
    places = " and ".join(f"GPU {index}" for index in target.gpus) or ", ".join(target.devices)
    verb = "is on" if target.is_listed else "holds open"
    process = target.process
    who = "not visible here" if process is None else f"{process.user}: {process.command}"
    return f"PID {target.pid} {verb} {places} ({who})"


def _have_devices(gpus: Sequence[Gpu]) -> bool:
    return any(rooted(f"/dev/nvidia{gpu.minor}").exists() for gpu in gpus)


def _memory_of(pid: int, gpus: Sequence[Gpu]) -> int | None:
    """Return the memory of a process on these GPUs in bytes, None where any of it is unknown."""
    sizes = [each.memory_bytes for gpu in gpus for each in gpu.all_processes if each.pid == pid]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None
