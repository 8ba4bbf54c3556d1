"""`pttool env`: what a bug report needs, and what decides whether a run works and repeats."""

import os
from collections.abc import Mapping
from typing import Any

from pttool.core.children import Answer, Child, Ending
from pttool.core.env.check import Check
from pttool.core.env.determinism import SWITCHES, VARIABLES, unmet_switches, unmet_variables
from pttool.core.env.openmp import openmp_settings
from pttool.core.env.packages import opencv_settings, python_settings, torch_settings
from pttool.core.env.processors import processor_settings
from pttool.core.env.setting import Setting
from pttool.core.env.variables import variable_settings
from pttool.core.gpu.diagnosis.cause import Diagnosis
from pttool.core.gpu.diagnosis.decision import diagnose
from pttool.core.gpu.diagnosis.facts import Facts
from pttool.core.gpu.diagnosis.gathering import DRIVER_LIMIT_S, TORCH_LIMIT_S, gather_facts
from pttool.core.gpu.doctor import TORCH_CHILD, unsupported_notes, unusable
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, PttoolError

OPENCV_CHILD = "pttool.core.env.opencv_child"
OPENCV_LIMIT_S = 20.0
COLUMNS = (Column("name", "name"), Column("shown", "value"), Column("advice", "advice"))
FOOTER = (
    Column("gpu_usable", "CUDA usable", "flag"),
    Column("gpu_cause", "cause"),
    Column("gpu_fix", "to do"),
    Column("deterministic", "environment deterministic", "flag"),
)
REPEATABLE = "in the script: pttool.recipes.seed_everything(0, deterministic=True)"


def env(check: Check | None = None) -> Report:
    """Return every setting, or with a check only those that it looks at; one that fails it.

    GPU fails (CheckFailedError) where CUDA is not usable, DETERMINISTIC where the environment that
    a run inherits does not make it repeat.

    torch's C library and cv2 are loaded and the driver is called in processes of their own, all at
    once: what is missing or broken there is a setting with advice. No other program is run.
    """
    with Child(TORCH_CHILD) as torch, Child(OPENCV_CHILD) as opencv:
        facts = gather_facts(torch)
        # Where the driver hangs, so does torch's call of it: what it told before is all there is.
        hangs = facts.cuda.ending is Ending.HUNG
        library = torch.answer(DRIVER_LIMIT_S if hangs else TORCH_LIMIT_S)
        cv2 = opencv.answer(OPENCV_LIMIT_S)
    diagnosis = diagnose(facts)
    unmet = [each.name for each in unmet_variables(os.environ, cuda=_has_cuda(facts))]
    settings = _settings(facts, diagnosis, library, cv2, os.environ)
    return Report(
        fields=("name", "value", "advice"),
        columns=COLUMNS,
        items=[each.as_item() for each in settings if check is None or each.name.startswith(check)],
        summary={
            "gpu_usable": diagnosis.usable,
            "gpu_cause": diagnosis.cause,
            "gpu_fix": diagnosis.fix,
            "deterministic": not unmet,
        },
        footer=FOOTER,
        notes=unsupported_notes(facts, diagnosis),
        failure=_failure(check, diagnosis, unmet),
    )


def _failure(check: Check | None, diagnosis: Diagnosis, unmet: list[str]) -> PttoolError | None:
    if check is Check.GPU and not diagnosis.usable:
        return unusable(diagnosis)
    if check is Check.DETERMINISTIC and unmet:
        return CheckFailedError(f"runs may not repeat: set {' and '.join(unmet)}")
    return None


def _settings(
    facts: Facts, diagnosis: Diagnosis, library: Answer, cv2: Answer, environ: Mapping[str, str]
) -> list[Setting]:
    return [
        *python_settings(),
        *torch_settings(facts.torch, library),
        *_gpu_settings(facts, diagnosis),
        *processor_settings(library.told),
        *_determinism_settings(library.told, environ, cuda=_has_cuda(facts)),
        *openmp_settings(library.told.get("openmp")),
        *opencv_settings(cv2),
        *variable_settings(environ),
    ]


def _gpu_settings(facts: Facts, diagnosis: Diagnosis) -> list[Setting]:
    """Return what doctor found, its fix as advice."""
    served = facts.cuda_of_driver
    names = [gpu.fault or gpu.name or "unknown" for gpu in facts.nvml.gpus]
    capabilities = [gpu.compute_capability for gpu in facts.nvml.gpus]
    return [
        Setting("gpu.usable", diagnosis.usable, None if diagnosis.usable else diagnosis.message),
        Setting("gpu.cause", diagnosis.cause, diagnosis.fix),
        Setting("gpu.devices", names or None),
        Setting("gpu.compute_capabilities", capabilities or None),
        Setting("gpu.driver_version", facts.nvml.driver_version),
        Setting("gpu.kernel_module_version", facts.files.kernel_module_version),
        Setting("gpu.driver_cuda_version", None if served is None else f"{served[0]}.{served[1]}"),
        Setting("gpu.container", facts.files.container),
    ]


def _determinism_settings(
    told: Mapping[str, Any], environ: Mapping[str, str], *, cuda: bool
) -> list[Setting]:
    """Return variables, which a run inherits, and switches as they are when torch starts."""
    unmet = unmet_variables(environ, cuda=cuda)
    variables = [
        Setting(
            f"deterministic.{each.name}",
            environ.get(each.name),
            f"{each.why}: export {each.name}={each.value}" if each in unmet else None,
        )
        for each in VARIABLES
    ]
    wrong = unmet_switches({each.name: told.get(each.name, each.wanted) for each in SWITCHES})
    switches = [
        Setting(
            f"deterministic.torch_{each.name}",
            told.get(each.name),
            REPEATABLE if each in wrong else None,
        )
        for each in SWITCHES
    ]
    precision = [
        Setting(f"precision.{name}", told.get(name))
        for name in ("matmul_tf32", "cudnn_tf32", "matmul_precision")
    ]
    return [*variables, *switches, *precision]


def _has_cuda(facts: Facts) -> bool:
    """Whether cuBLAS may be used; of a torch whose files say nothing, it may."""
    torch = facts.torch
    return torch is not None and (torch.version is None or torch.cuda is not None)
