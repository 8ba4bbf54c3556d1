"""`pttool env`: every setting, what it advises, and its checks."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pttool.core.torch_library import READ
from tests.conftest import PTTOOL, Program, assert_refused
from tests.fakes.cuda.fixtures import Broken, torch_library, write_files
from tests.fakes.nvml.scenarios import machine

REPEATABLE = {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
IN_TORCH = """
import json, torch
print(json.dumps({
    "torch.version": torch.__version__,
    "torch.cuda_built": torch.version.cuda,
    "torch.cudnn": torch.backends.cudnn.version(),
    "threads.intra": torch.get_num_threads(),
    "threads.inter": torch.get_num_interop_threads(),
    "deterministic.torch_deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    "deterministic.torch_cudnn_deterministic": torch.backends.cudnn.deterministic,
    "deterministic.torch_cudnn_benchmark": torch.backends.cudnn.benchmark,
    "precision.matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
    "precision.cudnn_tf32": torch.backends.cudnn.allow_tf32,
    "precision.matmul_precision": torch.get_float32_matmul_precision(),
}))
"""


def _settings(stdout: str) -> dict[str, Any]:
    return {item["name"]: item["value"] for item in json.loads(stdout)["items"]}


def _advice(stdout: str) -> dict[str, Any]:
    return {item["name"]: item["advice"] for item in json.loads(stdout)["items"]}


def test_it_agrees_with_an_imported_torch(program: Program, environment: dict[str, str]) -> None:
    threads = {"OMP_NUM_THREADS": "1"}
    inside = subprocess.run(
        [sys.executable, "-c", IN_TORCH],
        env={**environment, **threads},
        capture_output=True,
        check=True,
    )
    expected = json.loads(inside.stdout)
    done = program("env", "--json", env=threads)
    found = _settings(done.stdout)
    assert done.returncode == 0
    if found["torch.cudnn"] is not None:
        major, minor, patch = map(int, found["torch.cudnn"].split("."))
        found["torch.cudnn"] = 10000 * major + 100 * minor + patch
    assert {name: found[name] for name in expected} == expected
    assert found["environment.OMP_NUM_THREADS"] == "1"
    assert found["torchvision.version"].startswith(importlib.metadata.version("torchvision"))
    assert found["opencv.wheels"] == [
        f"opencv-python {importlib.metadata.version('opencv-python')}"
    ]


@pytest.mark.parametrize(
    ("library", "error"),
    [
        ("raise ImportError('libcudart.so.13: no such file')", "ImportError: libcudart.so.13"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "crashed: SIGSEGV"),
    ],
)
def test_a_broken_torch_is_a_setting_with_advice(
    library: str, error: str, program: Program, broken_machine: Broken
) -> None:
    done = program("env", "--json", env=broken_machine(library=library))
    assert done.returncode == 0
    assert _settings(done.stdout)["torch.library_loads"] is False
    assert error in _advice(done.stdout)["torch.library_loads"]
    assert _settings(done.stdout)["threads.intra"] is None


def test_a_missing_torch_is_one_too(program: Program, broken_machine: Broken) -> None:
    environment = broken_machine()
    hiding = (
        "import sys\nclass NoTorch:\n    def find_spec(name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'torchvision', 'cv2'):\n"
        "            raise ModuleNotFoundError(name, name=name)\nsys.meta_path.insert(0, NoTorch)\n"
    )
    write_files(Path(environment["PYTHONPATH"]), {"sitecustomize.py": hiding})
    done = program("env", "--json", env=environment)
    assert done.returncode == 0
    found = _settings(done.stdout)
    assert (found["torch.version"], found["torchvision.version"]) == (None, None)
    assert found["gpu.cause"] == "torch_missing"
    without_cublas = {**environment, "PYTHONHASHSEED": "0"}
    done = program("env", "--check", "deterministic", env=without_cublas)
    assert done.returncode == 0, done.stderr


def test_a_torchvision_of_another_release_does_not_fit(
    program: Program, broken_machine: Broken
) -> None:
    done = program("env", "--json", env=broken_machine(torch={"__version__": "2.9.1+cu130"}))
    assert "torchvision 0.24" in _advice(done.stdout)["torchvision.version"]


def test_opencv_wheels_that_overwrite_each_other_are_told(
    program: Program, broken_machine: Broken
) -> None:
    environment = broken_machine()
    name = "opencv_python_headless-4.11.0.86.dist-info/METADATA"
    metadata = "Metadata-Version: 2.1\nName: opencv-python-headless\nVersion: 4.11.0.86\n"
    broken_cv2 = "raise ImportError('libGL.so.1: cannot open shared object file')"
    write_files(Path(environment["PYTHONPATH"]), {name: metadata, "cv2/__init__.py": broken_cv2})
    done = program("env", "--json", env=environment)
    assert "opencv-python-headless 4.11.0.86" in _settings(done.stdout)["opencv.wheels"]
    assert "uninstall all" in _advice(done.stdout)["opencv.wheels"]
    assert "libgl1" in _advice(done.stdout)["opencv.cv2"]


def test_check_gpu_tells_by_its_exit_code(program: Program, broken_machine: Broken) -> None:
    healthy = {**broken_machine(), "CUDA_VISIBLE_DEVICES": "0"}
    assert program("env", "--check", "gpu", env=healthy).returncode == 0
    done = program("env", "--check", "gpu", env={**healthy, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 1
    assert "visible_devices_hide_all" in done.stderr
    assert all(line.startswith("gpu.") for line in done.stdout.splitlines()[1:8])


@pytest.mark.parametrize(
    ("cuda", "variables", "unmet"),
    [
        ("13.0", REPEATABLE, []),
        ("13.0", {}, ["PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG"]),
        ("13.0", {**REPEATABLE, "PYTHONHASHSEED": "random"}, ["PYTHONHASHSEED"]),
        ("13.0", {**REPEATABLE, "CUBLAS_WORKSPACE_CONFIG": ":0:0"}, ["CUBLAS_WORKSPACE_CONFIG"]),
        (None, {"PYTHONHASHSEED": "42"}, []),
    ],
)
def test_check_deterministic_looks_at_what_a_run_inherits(
    cuda: str | None,
    variables: dict[str, str],
    unmet: list[str],
    program: Program,
    broken_machine: Broken,
) -> None:
    environment = broken_machine(torch={"cuda": cuda})
    done = program("env", "--check", "deterministic", env={**environment, **variables})
    assert done.returncode == (1 if unmet else 0), done.stderr
    for name in unmet:
        assert name in done.stderr


def test_it_accepts_what_seed_everything_sets(environment: dict[str, str]) -> None:
    """In one process: the environment for the runs it starts, and the switches for itself."""
    script = (
        "import json, subprocess, torch\n"
        "from pttool.recipes import seed_everything\n"
        "seed_everything(0, deterministic=True)\n"
        f"values = {{name: getattr(torch._C, function)() for name, function in {READ!r}.items()}}\n"
        "from pttool.core.env.determinism import unmet_switches\n"
        "assert unmet_switches(values) == [], values\n"
        f"raise SystemExit(subprocess.call([{PTTOOL!r}, 'env', '--check', 'deterministic']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_markdown_masks_who_and_where(program: Program, broken_machine: Broken) -> None:
    environment = {
        **broken_machine(),
        "HOME": "/home/ann",
        "USER": "ann",
        "LD_PRELOAD": "",
        "CUDA_HOME": "/home/ann/cuda|12",
        "TORCH_HOME": "/data/ann/hub",
        "NVIDIA_API_KEY": "nvapi-secret",
    }
    done = program("env", "--md", env=environment)
    assert done.returncode == 0
    assert "| environment.CUDA_HOME | ~/cuda\\|12 |" in done.stdout
    assert "| environment.TORCH_HOME | /data/USER/hub |" in done.stdout
    assert "ann" not in done.stdout.replace("channel", "")
    assert "secret" not in done.stdout


@pytest.mark.parametrize("format", ["--json", "--csv", "--md", "--no-header"])
def test_credentials_within_urls_are_masked(
    program: Program, broken_machine: Broken, format: str
) -> None:
    urls = "file://bob:pw@h/x,https://tok%40en:s@cret@h2:80/y@1"
    done = program("env", format, env={**broken_machine(), "TORCH_HOME": urls})
    assert "file://***@h/x,https://***@h2:80/y@1" in done.stdout
    for secret in ("bob", "pw@", "tok%40en", "cret"):
        assert secret not in done.stdout


def test_no_driver_and_a_wrong_check_are_no_crash(program: Program, broken_machine: Broken) -> None:
    environment = broken_machine(machine([], init="!9"), library=torch_library(devices=0))
    done = program("env", "--csv", env=environment)
    assert done.returncode == 0
    assert "gpu.cause,module_not_loaded," in done.stdout
    assert_refused(program("env", "--check", "gpus"), 2, "gpus")
    assert_refused(program("env", "--md", "--json"), 2, "two formats")


def test_torch_stays_out_of_the_process(program: Program) -> None:
    done = program("env", env={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pttool.core.env.env" in imported
    assert not imported & {"torch", "torchvision", "cv2", "numpy", "pynvml", "av"}
