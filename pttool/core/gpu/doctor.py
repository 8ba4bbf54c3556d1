"""`pttool gpu doctor`: one cause and one fix, why CUDA is not usable."""

from typing import Any

from pttool.core.children import Child
from pttool.core.gpu.diagnosis.cause import Diagnosis
from pttool.core.gpu.diagnosis.decision import diagnose
from pttool.core.gpu.diagnosis.facts import Facts
from pttool.core.gpu.diagnosis.gathering import gather_facts
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError

TORCH_CHILD = "pttool.core.torch_library"
COLUMNS = (Column("checked", "checked"), Column("found", "found"))
FOOTER = (
    Column("usable", "CUDA usable", "flag"),
    Column("cause", "cause"),
    Column("message", "why"),
    Column("fix", "to do"),
)


def doctor() -> Report:
    """Return what was looked at and the first cause that explains why CUDA is not usable.

    The report fails (CheckFailedError) where it isn't. Probes run in processes of their own, so
    that a driver that crashes or hangs (20 s) is a finding. torch is not imported.
    """
    with Child(TORCH_CHILD) as torch:
        facts = gather_facts(torch)
    diagnosis = diagnose(facts)
    return Report(
        fields=("checked", "found"),
        columns=COLUMNS,
        items=[{"checked": name, "found": value} for name, value in _looked_at(facts)],
        summary={
            "usable": diagnosis.usable,
            "cause": diagnosis.cause,
            "message": diagnosis.message,
            "fix": diagnosis.fix,
        },
        footer=FOOTER,
        notes=unsupported_notes(facts, diagnosis),
        failure=None if diagnosis.usable else unusable(diagnosis),
    )


def unusable(diagnosis: Diagnosis) -> CheckFailedError:
    """Return the failure of a check that CUDA is usable; its report says why, and what to do."""
    return CheckFailedError(f"CUDA is not usable: {diagnosis.cause}")


def unsupported_notes(facts: Facts, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Name the GPUs that this torch has no code for, where others still make CUDA usable."""
    if not diagnosis.usable:
        return ()
    return tuple(
        f"GPU {gpu.index} ({gpu.name}) is of compute capability {gpu.compute_capability}, which "
        "this torch has no code for: leave it out of CUDA_VISIBLE_DEVICES"
        for gpu in facts.unsupported_gpus
    )


def _looked_at(facts: Facts) -> list[tuple[str, Any]]:
    torch, files = facts.torch, facts.files
    cuda_init = facts.cuda.ending.value if facts.cuda.code is None else f"cuInit {facts.cuda.code}"
    library = facts.cuda.library
    return [
        ("torch_version", torch and torch.version),
        ("torch_build", torch and _built_for(torch.cuda, torch.hip, torch.xpu)),
        ("kernel_module_version", files.kernel_module_version),
        ("driver_version", facts.nvml.driver_version),
        ("driver_cuda_version", _dotted(facts.cuda_of_driver)),
        ("nvml", facts.nvml.cause or "works"),
        ("libcuda", library if library != "found" else cuda_init),
        ("gpus", [gpu.name or gpu.fault for gpu in facts.nvml.gpus] or None),
        ("cuda_visible_devices", facts.visible_devices),
        ("container", files.container),
        ("torch_cuda_devices", facts.library and facts.library.cuda_devices),
    ]


def _built_for(cuda: str | None, hip: str | None, xpu: str | None) -> str:
    names = {"CUDA": cuda, "ROCm": hip, "XPU": xpu}
    return ", ".join(f"{name} {version}" for name, version in names.items() if version) or "CPU"


def _dotted(pair: tuple[int, int] | None) -> str | None:
    return None if pair is None else f"{pair[0]}.{pair[1]}"
