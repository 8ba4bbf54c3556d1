"""Fixtures: the fake NVML, in pttool as a process and in the library within the tests' own.

A conftest imports those that its tests use.
"""

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from pttool.core.gpu.locks import lock_path
from tests.conftest import Completed, forked
from tests.fakes.nvml.build import build, compiler


class Machine(Protocol):
    """Makes a scenario the machine that pttool sees, and returns the environment that does so."""

    def __call__(self, text: str) -> dict[str, str]: ...


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake libnvidia-ml.so.1."""
    if compiler() is None:
        pytest.skip("no C compiler (cc, gcc, clang) to build the fake NVML with")
    return build(tmp_path_factory.mktemp("nvml")).parent


@pytest.fixture
def sysroot(tmp_path: Path) -> Path:
    """An empty folder to stand for / where pttool reads /proc, /sys and /dev."""
    folder = tmp_path.parent / f"{tmp_path.name}-sysroot"
    folder.mkdir()
    return folder


@pytest.fixture
def machine_environment(fake_nvml: Path, tmp_path: Path) -> Iterator[Machine]:
    """Write a scenario, and return the environment in which a process finds it."""
    path = tmp_path.parent / f"{tmp_path.name}.fake"
    locks: set[Path] = set()

    def write(text: str) -> dict[str, str]:
        locks.update(lock_path(uuid) for uuid in re.findall(r"uuid=(.+)", text))
        renewed = path.with_suffix(".new")
        renewed.write_text(text, encoding="latin-1")
        renewed.rename(path)
        return {"LD_LIBRARY_PATH": str(fake_nvml), "FAKE_NVML": str(path)}

    yield write
    for lock in locks:
        lock.unlink(missing_ok=True)


class Gpu(Protocol):
    """Runs `pttool gpu ...` on the machine of a scenario."""

    def __call__(
        self, scenario: str, *args: str, env: Mapping[str, str] | None = None
    ) -> Completed: ...


@pytest.fixture(scope="session")
def gpu_forkserver(
    fake_nvml: Path, environment: dict[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """A process with the fake NVML in its library path that forks one for each command.

    Its GPUs are all visible, where other tests hide this machine's from torch.
    """
    visible = {key: value for key, value in environment.items() if key != "CUDA_VISIBLE_DEVICES"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.nvml.forkserver"],
        env={**visible, "COLUMNS": "80", "LD_LIBRARY_PATH": str(fake_nvml)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as server:
        yield server


@pytest.fixture
def pttool_gpu(
    machine_environment: Machine, gpu_forkserver: "subprocess.Popen[str]", tmp_path: Path
) -> Gpu:
    """Run `pttool gpu` as a process of its own, in an empty folder, on the machine of a scenario.

    `env` is added to the environment once the process runs: too late for the dynamic loader.
    """
    results = tmp_path.parent / f"{tmp_path.name}-output"
    results.mkdir()

    def run(scenario: str, *args: str, env: Mapping[str, str] | None = None) -> Completed:
        added = {**machine_environment(scenario), **(env or {})}
        return forked(gpu_forkserver, ["gpu", *args], tmp_path, results, added)

    return run


@pytest.fixture
def machine_here(
    machine_environment: Machine, fake_nvml: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """Make a scenario the machine that this process sees.

    The library is loaded by its path once: the loader then takes it for every libnvidia-ml.so.1.
    """
    ctypes.CDLL(str(fake_nvml / "libnvidia-ml.so.1"))

    def become(text: str) -> dict[str, str]:
        environment = machine_environment(text)
        monkeypatch.setenv("FAKE_NVML", environment["FAKE_NVML"])
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return environment

    return become
