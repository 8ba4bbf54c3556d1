"""All that the decision about a machine's GPUs rests on, gathered before it is made."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from pttool.core.children import Ending
from pttool.core.gpu.diagnosis.architectures import runs_on
from pttool.core.torch_build import TorchBuild

# The causes of NVML's silence where its library is not there, by whose GPUs are.
NO_LIBRARY = ("no_driver_library", "amd", "apple")


class Found(StrEnum):
    """Whether a shared library can be loaded."""

    YES = "found"
    NO = "missing"
    BROKEN = "broken"  # the file is there, and can't be loaded


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU as NVML shows it; `fault` is why it does not answer, as gpu_lost."""

    index: int
    name: str | None = None
    uuid: str | None = None
    compute_capability: str | None = None  # as 8.0
    mig: bool = False
    mig_uuids: tuple[str, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class NvmlFacts:
    """What libnvidia-ml said, or the cause why it did not, as `core.gpu.nvml` names it."""

    cause: str | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    gpus: tuple[GpuFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class CudaFacts:
    """What libcuda said: the CUDA version of the driver, and what cuInit returned, if it did."""

    library: Found | None = Found.YES
    driver_version: int | None = None  # 1000 * major + 10 * minor
    code: int | None = None
    devices: int | None = None
    ending: Ending = Ending.DONE
    detail: str = ""  # why the library can't be loaded, or how the process ended


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """What the files of /proc, /sys, /dev and /lib tell; unknown is None."""

    kernel_module_version: str | None = None
    wsl: bool = False
    wsl_device: bool = False  # /dev/dxg
    container: str | None = None  # docker, podman, kubernetes, apptainer
    nvidia_pci: bool = False
    amd_device: bool = False  # /dev/kfd
    nouveau: bool = False
    denied_nodes: tuple[str, ...] = ()
    gpu_nodes: int = 0
    uvm_node: bool = True
    secure_boot: bool | None = None
    module_built: bool | None = None  # for the kernel that runs


@dataclass(frozen=True, slots=True)
class TorchFacts:
    """What torch's own library said: `error` where it can't be loaded or ends the process."""

    error: str | None = None
    arch_list: tuple[str, ...] = ()
    cuda_devices: int | None = None
    cuda_warning: str | None = None


@dataclass(frozen=True)
class Facts:
    """Everything. `library` is None until torch itself has been asked."""

    system: str = "Linux"
    torch: TorchBuild | None = None
    library: TorchFacts | None = None
    nvml: NvmlFacts = field(default_factory=NvmlFacts)
    cuda: CudaFacts = field(default_factory=CudaFacts)
    files: SystemFacts = field(default_factory=SystemFacts)
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES
    hidden_by: str | None = None  # the rule by which it hides every GPU
    visible: tuple[int, ...] | None = None  # indices of the GPUs it leaves, None for all
    pynvml_distribution: str | None = None  # its version

    @cached_property
    def visible_gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that torch is shown."""
        shown = self.visible
        return tuple(gpu for gpu in self.nvml.gpus if shown is None or gpu.index in shown)

    @cached_property
    def lost_gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that have fallen off the bus."""
        return tuple(gpu for gpu in self.nvml.gpus if gpu.fault == "gpu_lost")

    @cached_property
    def unsupported_gpus(self) -> tuple[GpuFacts, ...]:
        """The visible GPUs that this build of torch has no code for."""
        architectures = self.library.arch_list if self.library else ()
        return tuple(
            gpu
            for gpu in self.visible_gpus
            if architectures
            and (capability := version_pair(gpu.compute_capability))
            and not runs_on(architectures, capability)
        )

    @property
    def has_driver_library(self) -> bool:
        """Whether one of the driver's two libraries is there."""
        return self.nvml.cause not in NO_LIBRARY or self.cuda.library is not Found.NO

    @property
    def cuda_of_driver(self) -> tuple[int, int] | None:
        """The newest CUDA that the driver serves: libcuda's word, which a compat library raises."""
        if self.cuda.driver_version:
            return self.cuda.driver_version // 1000, self.cuda.driver_version % 1000 // 10
        return version_pair(self.nvml.cuda_driver_version)

    @property
    def cuda_of_torch(self) -> tuple[int, int] | None:
        """The CUDA that torch was built with."""
        return version_pair(self.torch.cuda) if self.torch else None


def version_pair(version: str | None) -> tuple[int, int] | None:
    """Return the two numbers of a version as 13.0."""
    major, _, minor = (version or "").partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None
