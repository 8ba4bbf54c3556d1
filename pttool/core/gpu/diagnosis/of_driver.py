"""The rows of the decision table about torch's build, the driver and the machine's files."""

from pttool.core.gpu.diagnosis.cause import Row
from pttool.core.gpu.diagnosis.facts import Facts, Found

# How a container is given GPUs, by what runs it.
GIVING_GPUS = {
    "docker": "start the container with --gpus all (nvidia-container-toolkit on the host)",
    "podman": "start the container with --device nvidia.com/gpu=all",
    "kubernetes": "ask for nvidia.com/gpu in the pod's resource limits",
    "apptainer": "start the container with --nv",
}
RELOAD = "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"
CUDA_WHEELS = "https://pytorch.org/get-started/locally"


def torch_version(facts: Facts) -> str:
    """Return the version of torch, with that of its CUDA where the name has it."""
    return (facts.torch and facts.torch.version) or "torch"


def sees_gpu(facts: Facts) -> bool:
    """Whether torch itself has been asked, and sees a GPU."""
    return facts.library is not None and bool(facts.library.cuda_devices)


def _versions_differ(facts: Facts) -> str:
    module = facts.files.kernel_module_version
    library = facts.nvml.driver_version
    loaded = f" {module}" if module else ""
    installed = f" {library}" if library else ""
    return (
        f"version mismatch: the loaded kernel module{loaded} and the driver's library{installed} "
        "differ, as after an update of the driver"
    )


def _no_library_in_container(facts: Facts) -> bool:
    seen = facts.files.kernel_module_version is not None or facts.files.nvidia_pci
    return not facts.has_driver_library and facts.files.container is not None and seen


def _is_unloaded(facts: Facts) -> bool:
    return facts.nvml.cause == "driver_not_loaded"


def _capability_fix(facts: Facts) -> str:
    if facts.files.container:
        return "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return "install the driver's CUDA library, as the package libcuda1 or nvidia-driver-cuda"


BUILD_ROWS = (
    Row("torch_missing", lambda f: f.torch is None, "torch is not installed", "pip install torch"),
    Row(
        "mac_use_mps",
        lambda f: f.system == "Darwin",
        "macOS has no CUDA",
        "use Apple's GPU: torch.device('mps')",
    ),
    Row(
        None,
        lambda f: f.torch is not None and f.torch.hip is not None and sees_gpu(f),
        "torch is built for ROCm (AMD) and sees a GPU, which it calls cuda",
        None,
        usable=True,
    ),
    Row(
        "rocm_build_no_kfd",
        lambda f: f.torch is not None and f.torch.hip is not None and not f.files.amd_device,
        lambda f: f"{torch_version(f)} is built for ROCm (AMD), and there is no /dev/kfd",
        lambda f: (
            f"for an NVIDIA GPU install a CUDA build: {CUDA_WHEELS}"
            if f.files.nvidia_pci
            else "load amdgpu; start a container with --device /dev/kfd --device /dev/dri"
        ),
    ),
    Row(
        "rocm_build",
        lambda f: f.torch is not None and f.torch.hip is not None,
        lambda f: f"{torch_version(f)} is built for ROCm (AMD), which torch calls cuda too",
        "ask torch: pttool gpu info --torch; if it sees no GPU, join the groups render and video",
    ),
    Row(
        "cpu_only_build",
        lambda f: f.torch is not None and f.torch.cuda is None and f.torch.version is not None,
        lambda f: (
            f"{torch_version(f)} is a build without CUDA"
            + (" (for Intel's XPU)" if f.torch and f.torch.xpu else "")
        ),
        f"install a CUDA build: {CUDA_WHEELS}",
    ),
)

DRIVER_ROWS = (
    Row(
        "driver_library_mismatch",
        lambda f: f.nvml.cause == "version_mismatch" or f.cuda.code == 803,
        _versions_differ,
        lambda f: (
            "reboot the machine, then start the container again"
            if f.files.container
            else f"reboot, or reload the modules: {RELOAD}"
        ),
    ),
    Row(
        "wsl_no_gpu",
        lambda f: f.files.wsl and not f.files.wsl_device,
        "WSL shows no GPU: there is no /dev/dxg",
        "install NVIDIA's driver in Windows, then wsl --update and wsl --shutdown (WSL 2 only)",
    ),
    Row(
        "module_not_loaded",
        lambda f: _is_unloaded(f) and f.files.nouveau,
        "the kernel module nvidia is not loaded: nouveau has the GPU",
        "blacklist nouveau in /etc/modprobe.d, sudo update-initramfs -u (or dracut -f), reboot",
    ),
    Row(
        "module_not_loaded",
        lambda f: _is_unloaded(f) and f.files.module_built is False,
        "the kernel module nvidia is not built for the kernel that runs",
        "install the headers of this kernel, then sudo dkms autoinstall && sudo modprobe nvidia",
    ),
    Row(
        "module_not_loaded",
        lambda f: _is_unloaded(f) and bool(f.files.secure_boot),
        "the kernel module nvidia is not loaded: Secure Boot is on and takes only signed modules",
        "enrol the module's key (sudo mokutil --import KEY.der, reboot), or turn Secure Boot off",
    ),
    Row(
        "module_not_loaded",
        _is_unloaded,
        "the kernel module nvidia is not loaded",
        lambda f: (
            "on the host: sudo modprobe nvidia"
            if f.files.container
            else "sudo modprobe nvidia; sudo dmesg | grep -i nvidia says why it fails"
        ),
    ),
    Row(
        "container_without_gpus",
        _no_library_in_container,
        "this container was started without GPUs: the host has NVIDIA's, the container no library",
        lambda f: GIVING_GPUS[f.files.container or "docker"],
    ),
    Row(
        "nouveau",
        lambda f: not f.has_driver_library and f.files.nouveau,
        "the driver in use is nouveau, which has no CUDA",
        "install NVIDIA's driver and reboot",
    ),
    Row(
        "driver_not_installed",
        lambda f: not f.has_driver_library and f.files.nvidia_pci,
        "there is an NVIDIA GPU, and no driver for it",
        "install NVIDIA's driver and reboot",
    ),
    Row(
        "amd_gpu_cuda_build",
        lambda f: not f.has_driver_library and f.files.amd_device,
        lambda f: f"the GPU is AMD's, and {torch_version(f)} is built for NVIDIA's CUDA",
        f"install a ROCm build: {CUDA_WHEELS}",
    ),
    Row(
        "no_nvidia_gpu",
        lambda f: not f.has_driver_library,
        "there is no NVIDIA GPU and no driver",
        lambda f: (
            f"if the host has one: {GIVING_GPUS[f.files.container]}"
            if f.files.container
            else "run on the CPU, or on a machine that has one"
        ),
    ),
    Row(
        "container_lost_gpu",
        lambda f: f.nvml.cause == "unknown_error" and f.files.container is not None,
        "the container has lost its GPUs (NVML: unknown error), as after a systemd daemon-reload",
        "restart the container; to keep them use the systemd cgroup driver or CDI devices",
    ),
    Row(
        "device_permission",
        lambda f: bool(f.files.denied_nodes) or f.nvml.cause == "no_permission",
        lambda f: (
            f"no permission to read and write {' '.join(f.files.denied_nodes)}".rstrip()
            if f.files.denied_nodes
            else "no permission to reach the NVIDIA driver"
        ),
        "join the group that owns them (ls -l /dev/nvidia*; often video), and log in again",
    ),
    Row(
        "libcuda_missing",
        lambda f: f.cuda.library is Found.NO,
        "libcuda.so.1 is missing, though the driver's libnvidia-ml.so.1 is there",
        _capability_fix,
    ),
    Row(
        "libcuda_broken",
        lambda f: f.cuda.library is Found.BROKEN,
        lambda f: f"libcuda can't be loaded: {f.cuda.detail}",
        "install the driver again; look for old copies on LD_LIBRARY_PATH",
    ),
)
