"""Fixtures: a machine with a driver, its files and a torch, of which each can be broken.

A conftest imports those that its tests use.
"""

import ctypes
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from tests.fakes.nvml import build as nvml
from tests.fakes.nvml.scenarios import gpu, machine

# What a machine with one GPU and a driver shows, as far as doctor looks.
DRIVER_FILES = {
    "dev/nvidia0": "",
    "dev/nvidiactl": "",
    "dev/nvidia-uvm": "",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue",
    "proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
    "sys/bus/pci/devices/0000:0a:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:0a:00.0/class": "0x030200\n",
}
TORCH = {"__version__": "2.14.1+cu130", "cuda": "13.0", "hip": None, "xpu": None, "debug": False}
LIBRARY = """
def get_num_threads(): return 2
def _cuda_getArchFlags(): return {architectures!r}
def _cuda_getDeviceCount():
    import warnings
    if {warning!r}: warnings.warn({warning!r})
    return {devices!r}
"""


class Broken(Protocol):
    """Returns the environment of a healthy machine but for what it is told."""

    def __call__(
        self,
        scenario: str = machine([gpu(0)]),
        *,
        files: Mapping[str, str | None] | None = None,
        torch: Mapping[str, object] | None = None,
        library: str | None = None,
        libcuda: bool = True,
    ) -> dict[str, str]: ...


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake libcuda.so.1."""
    compiler = nvml.compiler()
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc, clang) to build the fake libcuda with")
    target = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    here = Path(__file__).parent
    sources = [str(here / "fake_cuda.c"), str(here.parent / "nvml" / "scenario.c")]
    options = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-w"]
    subprocess.run([compiler, *options, "-o", str(target), *sources], check=True)
    return target.parent


@pytest.fixture
def broken_machine(fake_nvml: Path, fake_cuda: Path, tmp_path: Path) -> Broken:
    """Make a machine of a scenario, files below PTTOOL_SYSROOT and a torch on PYTHONPATH.

    A file that is None is not there. `torch` are constants of version.py that differ, `library` the
    source of its C library, `libcuda` whether there is one.
    """
    beside = tmp_path.parent / f"{tmp_path.name}-machine"
    root, packages = beside / "root", beside / "packages"

    def make(
        scenario: str = machine([gpu(0)]),
        *,
        files: Mapping[str, str | None] | None = None,
        torch: Mapping[str, object] | None = None,
        library: str | None = None,
        libcuda: bool = True,
    ) -> dict[str, str]:
        folders = [fake_nvml]
        if libcuda:
            folders.append(fake_cuda)
        elif _has_own_libcuda():
            pytest.skip("this machine has a libcuda of its own")
        write_files(root, {**DRIVER_FILES, **(files or {})})
        write_torch(packages, {**TORCH, **(torch or {})}, library)
        described = beside / "scenario.fake"
        described.write_text(scenario)
        return {
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)),
            "FAKE_NVML": str(described),
            "PTTOOL_SYSROOT": str(root),
            "PYTHONPATH": str(packages),
        }

    return make


def write_files(root: Path, files: Mapping[str, str | None]) -> None:
    """Write files below a folder; one whose text is a path that leads nowhere is a link to it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None and text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        elif text is not None:
            path.write_text(text)


def write_torch(
    packages: Path, constants: Mapping[str, object], library: str | None = None
) -> None:
    """Write a package named torch; a `library` of None sees one GPU that it has code for."""
    folder = packages / "torch"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from . import _C\n")
    lines = [f"{name} = {value!r}\n" for name, value in constants.items()]
    (folder / "version.py").write_text("".join(lines))
    (folder / "_C.py").write_text(torch_library() if library is None else library)


def torch_library(architectures: str = "sm_80", devices: int = 1, warning: str = "") -> str:
    """Return the source of what stands for torch's C library."""
    return LIBRARY.format(architectures=architectures, devices=devices, warning=warning)


def _has_own_libcuda() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
