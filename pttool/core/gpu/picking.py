"""Which GPUs are free for a job, the best first: rules of a snapshot alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pttool.core.gpu.types import FieldError, Gpu, Memory, MigInstance, Process, Snapshot
from pttool.core.gpu.unlisted import unlisted_bytes
from pttool.core.gpu.visible import VARIABLE, VisibleDevices

IDLE_PERCENT = 10


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a GPU must offer. Without `min_free_bytes` it must be idle: nobody else computes there.

    Without `max_utilization_percent` it is 10, and an unknown utilization, as of every MIG
    instance, will do. Where it must be `visible`, CUDA_VISIBLE_DEVICES has to let it through.
    """

    count: int = 1
    min_free_bytes: int | None = None
    max_utilization_percent: int | None = None
    visible: bool = False


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a device doesn't fit; what `can_pass` may be otherwise once a process has ended."""

    reason: str
    can_pass: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A device that CUDA could use: a GPU, or a MIG instance of one; and what speaks against it."""

    gpu: Gpu
    instance: MigInstance | None
    against: Obstacle | None

    @property
    def uuid(self) -> str:
        """What CUDA_VISIBLE_DEVICES takes; empty where it is unknown, and so never fitting."""
        return (self.gpu.uuid if self.instance is None else self.instance.uuid) or ""

    @property
    def name(self) -> str:
        """How people call it."""
        if self.instance is None:
            return f"GPU {self.gpu.index}"
        return f"MIG instance {self.instance.index} of GPU {self.gpu.index}"

    @property
    def memory(self) -> Memory | None:
        """Its own memory."""
        return self.gpu.memory if self.instance is None else self.instance.memory

    @property
    def may_fit_later(self) -> bool:
        """Whether it fits, or may do so without anybody's mending it."""
        return self.against is None or self.against.can_pass


def judge(snapshot: Snapshot, conditions: Conditions, seen: VisibleDevices) -> list[Judged]:
    """Return every device of the machine, judged by the conditions, in the order of the buses.

    `seen` is what CUDA_VISIBLE_DEVICES lets through; with a GPU, each MIG instance of it.
    """
    judged = [each for gpu in snapshot.gpus for each in _judged(gpu, conditions)]
    if not conditions.visible:
        return judged
    hidden = Obstacle(f"{VARIABLE} hides it")
    return [each if _is_seen(each, seen) else replace(each, against=hidden) for each in judged]


def fitting(judged: Sequence[Judged]) -> list[Judged]:
    """Return those that nothing speaks against: most free memory first, then the least busy."""
    return sorted((each for each in judged if each.against is None), key=_rank)


def outside_note(picked: Sequence[Judged], seen: VisibleDevices) -> str | None:
    """Say which of these devices CUDA_VISIBLE_DEVICES hides, as a batch system sets it for a job.

    None where it lets all of them through.
    """
    outside = [each.name for each in picked if not _is_seen(each, seen)]
    if not outside:
        return None
    return f"{VARIABLE} hides {', '.join(outside)}: --visible keeps to what it lets through"


def _is_seen(judged: Judged, seen: VisibleDevices) -> bool:
    return judged.uuid in seen.uuids or judged.gpu.uuid in seen.uuids


def _judged(gpu: Gpu, conditions: Conditions) -> Iterator[Judged]:
    """In MIG mode CUDA takes the instances, never the GPU itself."""
    if gpu.fault is None and gpu.mig and gpu.instances:
        for instance in gpu.instances:
            yield Judged(gpu, instance, _against_instance(gpu, instance, conditions))
    else:
        yield Judged(gpu, None, _against_gpu(gpu, conditions))


def _against_gpu(gpu: Gpu, conditions: Conditions) -> Obstacle | None:
    if gpu.fault is not None:
        return Obstacle(gpu.fault)
    if gpu.mig:
        return Obstacle("MIG mode is on without an instance")
    if gpu.uuid is None:
        return Obstacle("its UUID is unknown")
    return (
        _against_mode(gpu, gpu.processes)
        or _against_load(gpu.utilization_percent, conditions)
        or _against_use(gpu.memory, gpu.processes, gpu.errors.get("processes"), conditions)
    )


def _against_instance(gpu: Gpu, instance: MigInstance, conditions: Conditions) -> Obstacle | None:
    if instance.uuid is None:
        return Obstacle("its UUID is unknown")
    error = instance.errors.get("processes")
    return (
        _against_mode(gpu, instance.processes)
        or _against_load(None, conditions)
        or _against_use(instance.memory, instance.processes, error, conditions)
    )


def _against_mode(gpu: Gpu, processes: Sequence[Process] | None) -> Obstacle | None:
    mode = gpu.compute_mode or ""
    if mode == "prohibited":
        return Obstacle("its compute mode is prohibited")
    if mode.startswith("exclusive") and _computing(processes):
        return Obstacle("its compute mode is exclusive, and a process computes there", True)
    return None


def _against_load(utilization: int | None, conditions: Conditions) -> Obstacle | None:
    most = conditions.max_utilization_percent
    if utilization is None:
        return None if most is None else Obstacle("its utilization is unknown")
    if utilization > (IDLE_PERCENT if most is None else most):
        return Obstacle(f"{utilization} % busy", True)
    return None


def _against_use(
    memory: Memory | None,
    processes: Sequence[Process] | None,
    error: str | None,
    conditions: Conditions,
) -> Obstacle | None:
    wanted = conditions.min_free_bytes
    # Some platforms have no list of processes at all: there a wish for memory is all there is.
    if processes is None and not (wanted is not None and error == FieldError.NOT_SUPPORTED):
        return Obstacle(
            f"its processes are unknown: {error}", error == FieldError.IMPLAUSIBLE_RECORDS
        )
    if memory is None:
        return Obstacle("its memory is unknown")
    if not memory.plausible:
        return Obstacle("its memory figures are implausible", True)
    if wanted is not None:
        return _against_free(memory, wanted)
    return _against_idle(memory, processes or ())


def _against_free(memory: Memory, wanted: int) -> Obstacle | None:
    if memory.total_bytes < wanted:
        return Obstacle(f"has {_gib(memory.total_bytes)} in all")
    if memory.free_bytes is None:
        return Obstacle("its free memory is unknown")
    if memory.free_bytes < wanted:
        return Obstacle(f"{_gib(memory.free_bytes)} free", True)
    return None


def _against_idle(memory: Memory, processes: Sequence[Process]) -> Obstacle | None:
    computing = len(_computing(processes))
    if computing:
        return Obstacle(f"{computing} process{'es' * (computing > 1)}", True)
    unlisted = unlisted_bytes(memory, processes)
    return Obstacle(f"{_gib(unlisted)} held by no listed process", True) if unlisted else None


def _computing(processes: Sequence[Process] | None) -> list[Process]:
    """A desktop draws on its GPU, which is free all the same."""
    return [each for each in processes or () if each.type != "G"]


def _rank(judged: Judged) -> tuple[int, int, int]:
    free = judged.memory.free_bytes if judged.memory is not None else None
    return -(free or 0), judged.gpu.utilization_percent or 0, judged.gpu.index


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
