"""Read what the files of /proc, /sys, /dev and /lib tell about drivers and GPUs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pttool.core.gpu.diagnosis.facts import SystemFacts
from pttool.core.sysroot import rooted

VERSION = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")
NODE = re.compile(r"nvidia(\d+|ctl|-uvm)")  # what CUDA opens; others are root's own
# https://uefi.org/specs/UEFI/2.10/03_Boot_Manager.html: four bytes of attributes, one of value.
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
NVIDIA, DISPLAY = "0x10de", "0x03"  # a PCI vendor, and the first byte of the class of displays


def system_facts(environ: Mapping[str, str] = os.environ) -> SystemFacts:
    """Return what can be read; a file that is not there, or not ours to read, says nothing."""
    release = _text("/proc/sys/kernel/osrelease").strip()
    nodes = [node for node in _listed("/dev", "nvidia*") if NODE.fullmatch(node.name)]
    version = VERSION.search(_text("/proc/driver/nvidia/version"))
    return SystemFacts(
        kernel_module_version=version[1] if version else None,
        wsl="microsoft" in release.lower(),
        wsl_device=rooted("/dev/dxg").exists(),
        container=_container(environ),
        nvidia_pci=any(map(_is_nvidia_gpu, _listed("/sys/bus/pci/devices", "*"))),
        amd_device=rooted("/dev/kfd").exists(),
        nouveau=any(line.startswith("nouveau ") for line in _text("/proc/modules").splitlines()),
        denied_nodes=tuple(
            f"/dev/{node.name}" for node in nodes if not os.access(node, os.R_OK | os.W_OK)
        ),
        gpu_nodes=sum(node.name[-1].isdigit() for node in nodes),
        uvm_node=rooted("/dev/nvidia-uvm").exists(),
        secure_boot=_secure_boot(),
        module_built=_module_built(release),
    )


def _container(environ: Mapping[str, str]) -> str | None:
    """Return the kind of container this runs in, if it leaves a trace."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    if "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ:
        return "apptainer"
    if rooted("/run/.containerenv").exists():
        return "podman"
    if rooted("/.dockerenv").exists():
        return "docker"
    return None


def _is_nvidia_gpu(device: Path) -> bool:
    return _read(device / "vendor").startswith(NVIDIA) and _read(device / "class")[:4] == DISPLAY


def _secure_boot() -> bool | None:
    try:
        value = rooted(SECURE_BOOT).read_bytes()
    except OSError:
        return None
    return value[4:5] == b"\1"


def _module_built(release: str) -> bool | None:
    """Whether there is a kernel module named nvidia for the running kernel."""
    modules = _text(f"/lib/modules/{release}/modules.dep")
    return "/nvidia.ko" in modules if modules else None


def _listed(folder: str, pattern: str) -> list[Path]:
    try:
        return sorted(rooted(folder).glob(pattern))
    except OSError:
        return []


def _text(path: str) -> str:
    return _read(rooted(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
