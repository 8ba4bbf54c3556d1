"""Gather the facts: all probes at once, each where it can harm nobody."""

import os
import platform
from dataclasses import replace

from pttool.core.children import Answer, Child
from pttool.core.gpu.diagnosis.decision import diagnose
from pttool.core.gpu.diagnosis.facts import (
    CudaFacts,
    Facts,
    Found,
    GpuFacts,
    NvmlFacts,
    TorchFacts,
)
from pttool.core.gpu.diagnosis.files import system_facts
from pttool.core.gpu.visible import VARIABLE, visible_devices
from pttool.core.torch_build import installed_version, torch_build

DRIVER_LIMIT_S = 20.0  # for calls of the driver: of a healthy one, seconds with many GPUs
TORCH_LIMIT_S = 60.0  # for torch's library, which a slow disk may take long to read
MOST_GPUS = 64  # as many as torch reckons with
NVML, CUDA = "pttool.core.gpu.diagnosis.nvml_child", "pttool.core.gpu.diagnosis.cuda_child"
# Causes, or none, that torch's own answer can still turn into another.
TORCH_DECIDES = {
    None, "pynvml_distribution", "unknown", "uvm_node_missing", "rocm_build", "rocm_build_no_kfd",
}  # fmt: skip


def gather_facts(torch: Child) -> Facts:
    """Return all facts; `torch` is a child that runs torch_library.

    It is only waited for if nothing else explains why CUDA does not work.
    """
    with Child(NVML) as nvml, Child(CUDA) as cuda:
        facts = Facts(
            system=platform.system(),
            torch=torch_build(),
            files=system_facts(),
            visible_devices=os.environ.get(VARIABLE),
            pynvml_distribution=installed_version("pynvml"),
            nvml=_nvml_facts(nvml.answer(DRIVER_LIMIT_S)),
            cuda=_cuda_facts(cuda.answer(DRIVER_LIMIT_S)),
        )
    facts = _with_visibility(facts)
    if diagnose(facts).cause in TORCH_DECIDES:
        facts = replace(facts, library=_torch_facts(torch.answer(TORCH_LIMIT_S)))
    return facts


def _nvml_facts(answer: Answer) -> NvmlFacts:
    told = dict(answer.told)
    if not told:
        return NvmlFacts(cause=answer.ending.value)
    gpus = tuple(
        GpuFacts(**{**gpu, "mig_uuids": tuple(gpu["mig_uuids"])}) for gpu in told.pop("gpus", ())
    )
    return NvmlFacts(**told, gpus=gpus)


def _cuda_facts(answer: Answer) -> CudaFacts:
    told = answer.told
    return CudaFacts(
        library=Found(told["library"]) if "library" in told else None,
        driver_version=told.get("driver_version"),
        code=told.get("code"),
        devices=told.get("devices"),
        ending=answer.ending,
        detail=told.get("detail", answer.detail),
    )


def _torch_facts(answer: Answer) -> TorchFacts:
    """What torch told before it ended; if it did not come to its end, that is the error."""
    told = answer.told
    failed = None if answer.is_done else f"its library {answer.ending}: {answer.detail}"
    return TorchFacts(
        error=told.get("error", failed),
        arch_list=tuple(told.get("arch_list") or ()),
        cuda_devices=told.get("cuda_devices"),
        cuda_warning=told.get("cuda_warning"),
    )


def _with_visibility(facts: Facts) -> Facts:
    """Return the facts with the GPUs that CUDA_VISIBLE_DEVICES leaves, or why it leaves none."""
    value, gpus = facts.visible_devices, facts.nvml.gpus
    by_uuid = value is not None and value.startswith(("GPU-", "MIG-"))
    if value is None or (by_uuid and not gpus):
        return facts
    owners = [gpu.index for gpu in gpus]
    uuids = [gpu.uuid or "" for gpu in gpus]
    if value.startswith("MIG-"):
        owners = [gpu.index for gpu in gpus for _ in gpu.mig_uuids]
        uuids = [uuid for gpu in gpus for uuid in gpu.mig_uuids]
    if not gpus:  # NVML says nothing, so that any number may be one of a GPU
        owners, uuids = list(range(MOST_GPUS)), [""] * MOST_GPUS
    shown = visible_devices(value, uuids)
    if not shown.indices:
        return replace(facts, visible=(), hidden_by=shown.rule or "an empty list")
    return replace(facts, visible=tuple(owners[place] for place in shown.indices))
