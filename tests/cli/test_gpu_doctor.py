"""`pttool gpu doctor` on machines that are broken in one way each: the rows of its table."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program
from tests.fakes.cuda.fixtures import Broken, torch_library, write_files
from tests.fakes.nvml.scenarios import gpu, machine, mig, mig_uuid, uuid

ONE = [gpu(0)]
NO_LIBRARY = machine([], init="!12")
NOTHING = {
    "dev/nvidia0": None, "dev/nvidiactl": None, "dev/nvidia-uvm": None,
    "proc/driver/nvidia/version": None, "sys/bus/pci/devices/0000:0a:00.0/vendor": None,
}  # fmt: skip
NOUVEAU = {"proc/modules": "nouveau 3100672 5 - Live 0x0000000000000000\n"}
DEP = "lib/modules/6.8.0-60-generic/modules.dep"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
WSL = {**NOTHING, "proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
DOCKER = {".dockerenv": ""}
PYNVML = "Metadata-Version: 2.1\nName: pynvml\nVersion: 13.0.1\n"
EMPTY_MIG = gpu(0, mig="1,1")

# What is broken (a scenario of NVML and libcuda, files, torch), the cause, and words of the answer.
Row = tuple[dict[str, Any], str, list[str]]
ROWS: dict[str, Row] = {
    "cpu build": (
        {"torch": {"cuda": None, "__version__": "2.14.1+cpu"}}, "cpu_only_build", ["2.14.1+cpu"],
    ),
    "rocm": (
        {"torch": {"cuda": None, "hip": "7.0"}, "files": {"dev/kfd": ""},
         "library": torch_library(devices=0)},
        "rocm_build", ["--torch"],
    ),
    "rocm, no kfd": (
        {"torch": {"cuda": None, "hip": "7.0"}, "library": torch_library(devices=0)},
        "rocm_build_no_kfd", ["/dev/kfd", "CUDA build"],
    ),
    "NVML 18": (
        {"scenario": machine([], init="!18")},
        "driver_library_mismatch", ["version mismatch", "580.95.05", "reboot", "rmmod"],
    ),
    "cuInit 803": (
        {"scenario": machine(ONE, cuinit="!803")}, "driver_library_mismatch", ["reboot"],
    ),
    "WSL": ({"scenario": NO_LIBRARY, "files": WSL}, "wsl_no_gpu", ["/dev/dxg", "wsl --update"]),
    "NVML 9": ({"scenario": machine([], init="!9")}, "module_not_loaded", ["sudo modprobe nvidia"]),
    "NVML 9, not built": (
        {"scenario": machine([], init="!9"), "files": {DEP: "kernel/fs/ext4.ko:\n"}},
        "module_not_loaded", ["dkms autoinstall"],
    ),
    "NVML 9, Secure Boot": (
        {"scenario": machine([], init="!9"),
         "files": {DEP: "updates/dkms/nvidia.ko.zst:\n", SECURE_BOOT: "\6\0\0\0\1"}},
        "module_not_loaded", ["Secure Boot", "mokutil"],
    ),
    "NVML 9, nouveau": (
        {"scenario": machine([], init="!9"), "files": NOUVEAU}, "module_not_loaded", ["blacklist"],
    ),
    "container without GPUs": (
        {"scenario": NO_LIBRARY, "libcuda": False, "files": DOCKER},
        "container_without_gpus", ["--gpus all"],
    ),
    "pod without GPUs": (
        {"scenario": NO_LIBRARY, "libcuda": False, "env": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}},
        "container_without_gpus", ["nvidia.com/gpu"],
    ),
    "nouveau": (
        {"scenario": NO_LIBRARY, "libcuda": False, "files": NOUVEAU}, "nouveau", ["install NVIDIA"],
    ),
    "no driver": (
        {"scenario": NO_LIBRARY, "libcuda": False}, "driver_not_installed", ["install NVIDIA"],
    ),
    "AMD card": (
        {"scenario": NO_LIBRARY, "libcuda": False, "files": {**NOTHING, "dev/kfd": ""}},
        "amd_gpu_cuda_build", ["ROCm"],
    ),
    "no GPU": (
        {"scenario": NO_LIBRARY, "libcuda": False, "files": NOTHING}, "no_nvidia_gpu", ["CPU"],
    ),
    "container has lost its GPUs": (
        {"scenario": machine([], init="!999"), "files": DOCKER},
        "container_lost_gpu", ["restart the container"],
    ),
    "no permission": (
        {"files": {"dev/nvidia0": "-> nowhere"}}, "device_permission", ["/dev/nvidia0", "group"],
    ),
    "NVML 4": ({"scenario": machine([], init="!4")}, "device_permission", ["permission"]),
    "no libcuda": ({"libcuda": False}, "libcuda_missing", ["libcuda1"]),
    "no libcuda in a container": (
        {"libcuda": False, "files": DOCKER},
        "libcuda_missing", ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
    ),
    "NVML 15": (
        {"scenario": machine([gpu(0), gpu(1, all="!15")])}, "gpu_lost", ["GPU 1", "Xid", "reboot"],
    ),
    "hidden": (
        {"env": {"CUDA_VISIBLE_DEVICES": ""}},
        "visible_devices_hide_all", ["CUDA_VISIBLE_DEVICES=''"],
    ),
    "hidden by a number": (
        {"env": {"CUDA_VISIBLE_DEVICES": "3"}},
        "visible_devices_hide_all", ["CUDA_VISIBLE_DEVICES='3'", "3 is no device"],
    ),
    "hidden by a repeated UUID": (
        {"env": {"CUDA_VISIBLE_DEVICES": f"{uuid(0)},{uuid(0)}"}},
        "visible_devices_hide_all", ["twice"],
    ),
    "MIG without instances": (
        {"scenario": machine([EMPTY_MIG], cucount=0)}, "mig_without_instances", ["mig -cgi"],
    ),
    "driver too old": (
        {"scenario": machine(ONE, cudriver=12020, driver="535.129.03")},
        "driver_too_old", ["535.129.03", "12.2", "13.0", "580.65.06"],
    ),
    "cuInit 802": ({"scenario": machine(ONE, cuinit="!802")}, "fabric_manager", ["fabricmanager"]),
    "cuInit 804": ({"scenario": machine(ONE, cuinit="!804")}, "compat_library", ["cuda/compat"]),
    "cuInit 999": ({"scenario": machine(ONE, cuinit="!999")}, "uvm_fails", ["nvidia_uvm"]),
    "cuInit 100": ({"scenario": machine(ONE, cuinit="!100")}, "no_device", ["sees no GPU"]),
    "no GPU behind the driver": ({"scenario": machine([])}, "no_device", ["lspci"]),
    "cuInit 46": (
        {"scenario": machine(ONE, cuinit="!46")}, "cuinit_fails", ["CUDA_ERROR_DEVICE_UNAVAILABLE"],
    ),
    "cuInit crashes": ({"scenario": machine(ONE, cuinit="crash")}, "driver_crashes", ["SIGSEGV"]),
    "no uvm node": (
        {"files": {"dev/nvidia-uvm": None}, "library": torch_library(devices=0)},
        "uvm_node_missing", ["nvidia-modprobe -u"],
    ),
    "architecture": (
        {"scenario": machine([gpu(0, cc="6,1", name="NVIDIA GeForce GTX 1080")])},
        "architecture_not_built", ["6.1", "sm_80", "GTX 1080"],
    ),
    "torch can't be loaded": (
        {"library": "raise ImportError('libcudnn.so.9: cannot open shared object file')"},
        "torch_broken", ["libcudnn.so.9"],
    ),
    "torch crashes": (
        {"library": "import os\nos.abort()"}, "torch_broken", ["SIGABRT"],
    ),
    "torch sees nothing": (
        {"library": torch_library(devices=0, warning="CUDA initialization: odd")},
        "torch_sees_no_gpu", ["CUDA initialization: odd"],
    ),
}  # fmt: skip


def _run(program: Program, broken_machine: Broken, what: dict[str, Any]) -> Any:
    environment = {**broken_machine(**{k: v for k, v in what.items() if k != "env"})}
    environment.setdefault("CUDA_VISIBLE_DEVICES", uuid(0))
    return program("gpu", "doctor", "--json", env={**environment, **what.get("env", {})})


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_each_way_to_be_broken_has_its_cause(
    row: Row, program: Program, broken_machine: Broken
) -> None:
    what, cause, words = row
    done = _run(program, broken_machine, what)
    summary = json.loads(done.stdout)["summary"]
    assert (summary["cause"], summary["usable"]) == (cause, False)
    for word in words:
        assert word in f"{summary['message']} {summary['fix']}"
    assert done.returncode == 1
    assert done.stderr == f"pttool: error: CUDA is not usable: {cause}\n"


USABLE: dict[str, dict[str, Any]] = {
    "a GPU": {},
    "ROCm": {
        "torch": {"cuda": None, "hip": "7.0"}, "files": {**NOTHING, "dev/kfd": ""},
        "scenario": NO_LIBRARY, "libcuda": False,
    },
    "a Jetson without nvidia-uvm": {"files": {"dev/nvidia-uvm": None}},
    "an instance": {
        "scenario": machine([gpu(0, mig="1,1", **mig(0, 1, 40960))]),
        "env": {"CUDA_VISIBLE_DEVICES": mig_uuid(0)},
    },
    "an older minor version": {"scenario": machine(ONE, cudriver=13000), "torch": {"cuda": "13.2"}},
    "code that the driver compiles": {
        "scenario": machine([gpu(0, cc="12,0")]), "library": torch_library("sm_80 compute_90"),
    },
}  # fmt: skip


@pytest.mark.parametrize("what", USABLE.values(), ids=list(USABLE))
def test_a_machine_that_works_has_no_cause(
    what: dict[str, Any], program: Program, broken_machine: Broken
) -> None:
    done = _run(program, broken_machine, what)
    summary = json.loads(done.stdout)["summary"]
    assert (summary["cause"], summary["usable"], done.returncode) == (None, True, 0)


def test_pynvml_is_a_cause_that_leaves_cuda_usable(
    program: Program, broken_machine: Broken
) -> None:
    environment = broken_machine()
    packages = Path(environment["PYTHONPATH"])
    write_files(packages, {"pynvml-13.0.1.dist-info/METADATA": PYNVML})
    done = program("gpu", "doctor", "--json", env={**environment, "CUDA_VISIBLE_DEVICES": "0"})
    summary = json.loads(done.stdout)["summary"]
    assert (summary["cause"], summary["usable"]) == ("pynvml_distribution", True)
    assert "pip uninstall pynvml" in summary["fix"]
    assert done.returncode == 0


def test_without_torch_it_says_so(program: Program, broken_machine: Broken) -> None:
    environment = broken_machine()
    write_files(Path(environment["PYTHONPATH"]), {"sitecustomize.py": HIDES_TORCH})
    done = program("gpu", "doctor", env=environment)
    assert done.returncode == 1
    assert "torch_missing" in done.stdout
    assert "pip install torch" in done.stdout


HIDES_TORCH = """
import sys
class NoTorch:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch)
"""


def test_a_gpu_without_code_is_noted_where_another_has_it(
    program: Program, broken_machine: Broken
) -> None:
    old = gpu(0, name="NVIDIA GeForce GT 1030", cc="6,1")
    environment = broken_machine(machine([old, gpu(1)]))
    done = program("gpu", "doctor", env={**environment, "CUDA_VISIBLE_DEVICES": "0,1"})
    assert done.returncode == 0
    assert "GT 1030" in done.stderr


def test_torch_is_not_imported_by_pttool_itself(program: Program, broken_machine: Broken) -> None:
    environment = {**broken_machine(), "CUDA_VISIBLE_DEVICES": "0", "PYTHONPROFILEIMPORTTIME": "1"}
    done = program("gpu", "doctor", env=environment)
    assert done.returncode == 0
    assert not [line for line in done.stderr.splitlines() if line.endswith(("| torch", "| pynvml"))]
