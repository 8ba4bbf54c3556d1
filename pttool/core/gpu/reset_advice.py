"""What is known to keep a GPU from being reset, and which GPUs are reset together."""

import os
from collections.abc import Sequence

from pttool.core.gpu.types import Gpu
from pttool.core.sysroot import rooted

# By the first compute capability of an architecture, as nvidia-smi's manual has it (--gpu-reset).
AMPERE = (8, 0)
HOPPER = (9, 0)


def blockers(gpus: Sequence[Gpu]) -> str:
    """Return on one line who may hold GPUs that nvidia-smi finds in use, the likely first."""
    if any(gpu.fault is not None for gpu in gpus):
        return "see Xid in dmesg: after Xid 79 only a reboot brings the GPU back"
    known: list[str] = []
    if os.geteuid() != 0:
        known.append("a reset takes root (sudo)")
    persistent = ",".join(str(gpu.index) for gpu in gpus if gpu.persistence_mode)
    if persistent:
        known.append(
            f"persistence mode is on (sudo nvidia-smi -pm 0 -i {persistent}, or stop "
            "nvidia-persistenced)"
        )
    drm = "is loaded" if rooted("/sys/module/nvidia_drm").exists() else "if loaded"
    known.append(
        "other known holders: dcgm (systemctl stop nvidia-dcgm), Fabric Manager (systemctl stop "
        f"nvidia-fabricmanager), X or Wayland, nvidia_drm {drm} (modprobe -r nvidia_drm)"
    )
    return "; ".join(known)


def nvlink_rule(gpus: Sequence[Gpu]) -> str:
    """Return which GPUs must be reset in one command, by the oldest architecture among these."""
    known = [gpu.compute_capability for gpu in gpus if gpu.compute_capability is not None]
    if not known:
        return "NVLink: on some architectures GPUs that it joins must be reset in one command"
    oldest = min(tuple(map(int, capability.split("."))) for capability in known)
    if oldest < AMPERE:
        return "NVLink before Ampere: GPUs that it joins must be reset in one command: name all"
    if oldest < HOPPER:
        return (
            "NVLink on Ampere and Ada: one GPU can be reset by itself, on NVSwitch systems while "
            "Fabric Manager runs; else all that are joined in one command"
        )
    return "NVLink from Hopper on: one GPU can be reset by itself, without Fabric Manager too"
