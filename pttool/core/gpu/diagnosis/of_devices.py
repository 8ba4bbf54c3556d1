"""The rows of the decision table about GPUs, CUDA and torch, once there is a driver."""

from pttool.core.children import Ending
from pttool.core.gpu.diagnosis.cause import Row
from pttool.core.gpu.diagnosis.facts import Facts, GpuFacts
from pttool.core.gpu.diagnosis.of_driver import CUDA_WHEELS, sees_gpu, torch_version

# The first driver that serves each major version of CUDA, and with it all its minor versions.
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
FIRST_DRIVERS = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
CUDA_ERRORS = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    304: "CUDA_ERROR_OPERATING_SYSTEM",
    800: "CUDA_ERROR_NOT_PERMITTED",
}


def _named(gpus: tuple[GpuFacts, ...]) -> str:
    return ", ".join(f"GPU {gpu.index}" + (f" ({gpu.name})" if gpu.name else "") for gpu in gpus)


def _only_empty_mig(facts: Facts) -> bool:
    gpus = facts.visible_gpus
    return bool(gpus) and all(gpu.mig and not gpu.mig_uuids for gpu in gpus)


def _is_driver_too_old(facts: Facts) -> bool:
    served, built = facts.cuda_of_driver, facts.cuda_of_torch
    return served is not None and built is not None and served[0] < built[0]


def _newer_driver(facts: Facts) -> str:
    served, built = facts.cuda_of_driver or (0, 0), facts.cuda_of_torch or (0, 0)
    least = FIRST_DRIVERS.get(built[0])
    named = f" ({least} or later)" if least else ""
    return (
        f"install a driver for CUDA {built[0]}{named}, or a torch built with CUDA {served[0]}: "
        f"{CUDA_WHEELS}"
    )


def _too_old(facts: Facts) -> str:
    served, built = facts.cuda_of_driver or (0, 0), facts.cuda_of_torch or (0, 0)
    version = f" {facts.nvml.driver_version}" if facts.nvml.driver_version else ""
    return (
        f"the driver{version} serves CUDA {served[0]}.{served[1]} at most, and "
        f"{torch_version(facts)} is built with {built[0]}.{built[1]}"
    )


def _hangs(facts: Facts) -> bool:
    return facts.cuda.ending is Ending.HUNG or facts.nvml.cause == "hung"


def _is_unsupported(facts: Facts) -> bool:
    return bool(facts.unsupported_gpus) and len(facts.unsupported_gpus) == len(facts.visible_gpus)


def _no_code(facts: Facts) -> str:
    shown = ", ".join(sorted({str(gpu.compute_capability) for gpu in facts.unsupported_gpus}))
    built = " ".join(facts.library.arch_list if facts.library else ())
    return (
        f"{torch_version(facts)} has no code for {_named(facts.unsupported_gpus)} of compute "
        f"capability {shown}: it is built for {built}"
    )


def _sees_none(facts: Facts) -> bool:
    return facts.library is not None and facts.library.cuda_devices == 0


def _torch_words(facts: Facts) -> str:
    words = facts.library.cuda_warning if facts.library else None
    return f"CUDA starts, but torch sees no GPU{f': {words}' if words else ''}"


DEVICE_ROWS = (
    Row(
        "gpu_lost",
        lambda f: bool(f.lost_gpus) or f.nvml.cause == "gpu_lost",
        lambda f: f"fallen off the bus: {_named(f.lost_gpus) or 'a GPU'}",
        "sudo dmesg | grep Xid says why; reboot, and reseat or replace it if it comes back",
    ),
    Row(
        "visible_devices_hide_all",
        lambda f: f.hidden_by is not None,
        lambda f: f"CUDA_VISIBLE_DEVICES={f.visible_devices!r} hides every GPU: {f.hidden_by}",
        "unset CUDA_VISIBLE_DEVICES, or take one that is free: $(pttool gpu pick)",
    ),
    Row(
        "mig_without_instances",
        _only_empty_mig,
        lambda f: f"MIG is on without instances on {_named(f.visible_gpus)}: CUDA sees no device",
        "make one: sudo nvidia-smi mig -cgi PROFILE -C; or turn MIG off: sudo nvidia-smi -mig 0",
    ),
    Row("driver_too_old", _is_driver_too_old, _too_old, _newer_driver),
    Row(
        "fabric_manager",
        lambda f: f.cuda.code == 802,
        "cuInit 802: the NVSwitch fabric of this machine is not set up",
        "sudo systemctl start nvidia-fabricmanager, of exactly the driver's version; "
        "sudo journalctl -u nvidia-fabricmanager says why it fails",
    ),
    Row(
        "compat_library",
        lambda f: f.cuda.code == 804,
        "cuInit 804: a CUDA compat library stands before the driver's, and this GPU or driver "
        "can't use it",
        "take cuda/compat off LD_LIBRARY_PATH (it is for data-centre GPUs), or update the driver",
    ),
    Row(
        "uvm_fails",
        lambda f: f.cuda.code == 999,
        "cuInit 999: the kernel module nvidia_uvm fails, as after suspend, or is not loaded",
        "sudo rmmod nvidia_uvm; sudo modprobe nvidia_uvm && sudo nvidia-modprobe -u -c 0",
    ),
    Row(
        "no_device",
        lambda f: f.cuda.code == 100 or f.nvml.cause == "no_gpu",
        "the driver runs, and sees no GPU",
        "lspci | grep -i nvidia tells if the machine sees one; start a container with GPUs",
    ),
    Row(
        "cuinit_fails",
        lambda f: f.cuda.code not in (None, 0),
        lambda f: (
            f"cuInit fails with {f.cuda.code}"
            + (f" ({CUDA_ERRORS[f.cuda.code]})" if f.cuda.code in CUDA_ERRORS else "")
        ),
        "sudo dmesg | grep -iE 'nvrm|xid' says what the driver met; reboot if it is stuck",
    ),
    Row(
        "driver_hangs",
        _hangs,
        "the driver does not answer: a call was stopped after 20 s",
        "end processes that hang on the GPU (pttool gpu ps), else reboot; see dmesg for Xid",
    ),
    Row(
        "driver_crashes",
        lambda f: f.cuda.ending is Ending.CRASHED or f.nvml.cause == "crashed",
        lambda f: (
            f"libcuda crashes in cuInit ({f.cuda.detail})"
            if f.cuda.ending is Ending.CRASHED
            else "the driver's libnvidia-ml crashes"
        ),
        "install the driver again; look for old copies on LD_LIBRARY_PATH",
    ),
    Row(
        "uvm_node_missing",
        lambda f: f.files.gpu_nodes > 0 and not f.files.uvm_node and not sees_gpu(f),
        "/dev/nvidia-uvm is missing, which every CUDA context needs",
        lambda f: (
            "start the container with --gpus all, or add --device /dev/nvidia-uvm"
            if f.files.container
            else "sudo nvidia-modprobe -u -c 0, and at every boot: nvidia-persistenced"
        ),
    ),
    Row(
        "architecture_not_built",
        _is_unsupported,
        _no_code,
        f"install a torch built for it (newer, or of another CUDA): {CUDA_WHEELS}",
    ),
    Row(
        "torch_broken",
        lambda f: (
            (f.torch is not None and f.torch.version is None)
            or (f.library is not None and f.library.error is not None)
        ),
        lambda f: (
            "torch can't be loaded: "
            + ((f.library and f.library.error) or "its folder holds no version")
        ),
        "pip install --force-reinstall torch",
    ),
    Row(
        "torch_sees_no_gpu",
        _sees_none,
        _torch_words,
        "python -c 'import torch; torch.zeros(1).cuda()' shows torch's own error",
    ),
    Row(
        "unknown",
        lambda f: f.cuda.code is None and not sees_gpu(f),
        "CUDA does not start, for a reason that pttool does not know",
        "sudo dmesg | grep -iE 'nvrm|xid' says what the driver met",
    ),
    Row(
        "pynvml_distribution",
        lambda f: f.pynvml_distribution is not None,
        "CUDA is usable; the package pynvml is installed, for which torch warns at every start",
        "pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py",
        usable=True,
    ),
    Row(None, lambda f: True, "CUDA is usable", None, usable=True),
)
