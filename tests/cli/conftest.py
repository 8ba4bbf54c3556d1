"""The fake NVML, in pttool as a process, and real processes on its GPUs."""

from tests.fakes.cuda.fixtures import broken_machine, fake_cuda
from tests.fakes.nvml.fixtures import (
    fake_nvml,
    gpu_forkserver,
    machine_environment,
    pttool_gpu,
    sysroot,
)
from tests.fakes.processes import processes

__all__ = [
    "broken_machine",
    "fake_cuda",
    "fake_nvml",
    "gpu_forkserver",
    "machine_environment",
    "processes",
    "pttool_gpu",
    "sysroot",
]
