"""Ask torch what it sees of the GPUs, in a process that has nothing else to do."""

from collections.abc import Callable
from types import ModuleType
from typing import Any


def tell_all(tell: Callable[..., None]) -> None:
    """Tell torch's `version`, what it is `built_for`, and its `devices`; else the `error`."""
    try:
        import torch
    except Exception as error:  # a broken torch fails in any way
        tell(error=f"{type(error).__name__}: {' '.join(str(error).split())}")
        return
    tell(version=torch.__version__, built_for=_built_for(torch))
    try:
        tell(devices=_devices(torch))
    except RuntimeError as error:  # of a driver or GPU that fails
        tell(error=str(error).partition("\n")[0])


def _built_for(torch: ModuleType) -> str:
    """ROCm's builds call their devices cuda too."""
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return "Apple's GPUs" if torch.backends.mps.is_built() else "CPU"


def _devices(torch: ModuleType) -> list[dict[str, Any]]:
    if torch.cuda.is_available():
        return [_of_cuda(torch, number) for number in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        total = torch.mps.recommended_max_memory()
        return [{"device": "mps", "name": "Apple GPU", "total_bytes": total, "uuid": None}]
    return []


def _of_cuda(torch: ModuleType, number: int) -> dict[str, Any]:
    found = torch.cuda.get_device_properties(number)
    return {
        "device": f"cuda:{number}",
        "name": found.name,
        "total_bytes": found.total_memory,
        "uuid": str(found.uuid) if hasattr(found, "uuid") else None,
    }
