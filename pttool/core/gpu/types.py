"""What is known of the GPUs of a machine: raw numbers; None is unknown, and `errors` says why."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class FieldError(StrEnum):
    """Why a field is unknown. Other codes of NVML are named nvml_N."""

    NOT_SUPPORTED = "not_supported"
    NO_PERMISSION = "no_permission"
    NOT_FOUND = "not_found"
    GPU_LOST = "gpu_lost"
    RESET_REQUIRED = "reset_required"
    DRIVER_TOO_OLD = "driver_too_old"
    UNKNOWN_ERROR = "unknown_error"
    UNDECODABLE = "undecodable"
    IMPLAUSIBLE_RECORDS = "implausible_records"
    IMPLAUSIBLE = "implausible"


class MemorySource(StrEnum):
    """Who told of the memory: NVML's second call, its first, /proc/meminfo, or torch."""

    NVML = "nvml"
    NVML_V1 = "nvml_v1"
    SYSTEM = "system"
    TORCH = "torch"


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a GPU or MIG instance, in bytes.

    `unified` is memory that the CPU shares. Figures that contradict the processes are not
    `plausible`: they are as the driver gives them, without a free figure that can't be.
    """

    total_bytes: int
    used_bytes: int | None
    free_bytes: int | None
    source: MemorySource
    unified: bool = False
    plausible: bool = True


@dataclass(frozen=True, slots=True)
class Process:
    """A process as NVML lists it: the PID is one of the machine, whatever namespace this is.

    `type` is as nvidia-smi has it: C computes, G draws, M computes through MPS, C+G.
    """

    pid: int
    type: str
    memory_bytes: int | None
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class Clocks:
    """Current clocks in MHz."""

    graphics_mhz: int | None
    sm_mhz: int | None
    memory_mhz: int | None


@dataclass(frozen=True, slots=True)
class Ecc:
    """Error correction of memory; errors are those not corrected since the driver was loaded."""

    enabled: bool
    uncorrected_errors: int | None


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A slice of a GPU in MIG mode; CUDA sees it as a device of its own."""

    index: int
    uuid: str | None
    name: str | None
    gpu_instance: int | None
    compute_instance: int | None
    memory: Memory | None
    processes: tuple[Process, ...] | None
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `index` is NVML's, in the order of PCI buses; `minor` the N of /dev/nvidiaN;
    `architecture` NVML's number of it, as NVML_DEVICE_ARCH_HOPPER.

    `processes` are those outside its MIG instances, None where the list can't be read. One that
    was narrowed to some instances (`is_narrowed`) stands for those alone.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    pci_bus_id: str | None = None
    minor: int | None = None
    memory: Memory | None = None
    utilization_percent: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clocks: Clocks | None = None
    ecc: Ecc | None = None
    persistence_mode: bool | None = None
    compute_mode: str | None = None
    compute_capability: str | None = None
    architecture: int | None = None
    mig: bool | None = None
    instances: tuple[MigInstance, ...] = ()
    processes: tuple[Process, ...] | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    fault: str | None = None
    is_narrowed: bool = False

    def narrowed(self, uuids: Collection[str]) -> "Gpu":
        """Return it with no more than the MIG instances of these UUIDs, and what is in them."""
        kept = tuple(each for each in self.instances if each.uuid in uuids)
        return replace(self, instances=kept, processes=(), is_narrowed=True)

    @property
    def is_healthy(self) -> bool:
        """Whether it answers: else `fault` says why not, as gpu_lost."""
        return self.fault is None

    @property
    def all_processes(self) -> tuple[Process, ...]:
        """Those on the GPU itself and in its MIG instances, as far as they are known."""
        own = self.processes or ()
        return own + tuple(p for each in self.instances for p in each.processes or ())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All GPUs at one moment. The versions are as the driver says: 580.95.05, and 13.0 of CUDA.

    `errors` say why a version is unknown.
    """

    driver_version: str | None
    cuda_driver_version: str | None
    gpus: tuple[Gpu, ...]
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def pids(self) -> frozenset[int]:
        """Those that NVML lists on any GPU."""
        return frozenset(process.pid for gpu in self.gpus for process in gpu.all_processes)
