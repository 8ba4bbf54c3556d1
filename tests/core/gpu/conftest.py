"""The fake NVML, within this process, and real processes to look at and to end."""

from tests.fakes.cuda.fixtures import broken_machine, fake_cuda
from tests.fakes.nvml.fixtures import fake_nvml, machine_environment, machine_here, sysroot
from tests.fakes.processes import processes

__all__ = [
    "broken_machine",
    "fake_cuda",
    "fake_nvml",
    "machine_environment",
    "machine_here",
    "processes",
    "sysroot",
]
