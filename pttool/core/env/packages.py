"""Versions of torch and what stands beside it, from their files and metadata."""

import importlib.metadata
import platform
import re
import sys
from collections.abc import Mapping
from typing import Any

from pttool.core.children import Answer
from pttool.core.env.setting import Setting
from pttool.core.torch_build import (
    TorchBuild,
    assigned_constants,
    installed_version,
    package_folder,
)

OPENCV = (
    "opencv-python", "opencv-contrib-python", "opencv-python-headless",
    "opencv-contrib-python-headless",
)  # fmt: skip


def python_settings() -> list[Setting]:
    """Return the interpreter and the system it runs on."""
    system = platform.uname()
    environment = None if sys.prefix == sys.base_prefix else sys.prefix
    return [
        Setting("python.version", platform.python_version()),
        Setting("python.executable", sys.executable),
        Setting("python.virtual_environment", environment),
        Setting("system.platform", f"{system.system} {system.release} {system.machine}"),
        Setting("system.libc", " ".join(platform.libc_ver()).strip() or None),
    ]


def torch_settings(build: TorchBuild | None, library: Answer) -> list[Setting]:
    """Return torch's version and build, whether its library loads, and torchvision beside it."""
    if build is None:
        return [Setting("torch.version", None, "pip install torch"), _torchvision(None)]
    told = library.told
    missing = _missing_requirements("torch")
    return [
        Setting("torch.version", build.version),
        Setting("torch.path", str(build.path)),
        Setting("torch.library_loads", *_loads(library)),
        Setting("torch.missing_requirements", missing, _install(missing)),
        Setting("torch.debug_build", build.debug),
        Setting("torch.cuda_built", build.cuda),
        Setting("torch.rocm_built", build.hip),
        Setting("torch.xpu_built", build.xpu),
        Setting("torch.architectures", told.get("arch_list")),
        Setting("torch.cudnn", told.get("cudnn")),
        Setting("torch.nccl", told.get("nccl")),
        _torchvision(build),
        Setting("numpy.version", installed_version("numpy")),
    ]


def _loads(library: Answer) -> tuple[bool, str | None]:
    error = library.told.get("error")
    if error is None and not library.is_done and "intra_threads" not in library.told:
        error = f"{library.ending}: {library.detail}"
    return error is None, error


def _torchvision(torch: TorchBuild | None) -> Setting:
    """Return torchvision's version, and whether it was built for this torch."""
    folder = package_folder("torchvision")
    if folder is None:
        return Setting("torchvision.version", None)
    version = assigned_constants(folder / "version.py").get("__version__")
    version = version or installed_version("torchvision")
    return Setting("torchvision.version", version, _misfit(version, torch))


def _misfit(torchvision: str | None, torch: TorchBuild | None) -> str | None:
    """Say how torchvision and torch do not belong together; None if they do, or nobody knows.

    torchvision 0.N is built for torch 2.(N - 15): https://github.com/pytorch/vision#installation
    """
    if torch is None or torch.version is None or torchvision is None:
        return None
    theirs, ours = _release(torchvision), _release(torch.version)
    if theirs and ours and theirs[0] == 0 and ours[0] == 2 and theirs[1] != ours[1] + 15:
        fitting = f"torchvision 0.{ours[1] + 15}"
        return f"does not fit torch {torch.version}, whose operators {fitting} needs: install that"
    builds = [text.partition("+")[2] for text in (torchvision, torch.version)]
    if all(builds) and builds[0] != builds[1]:
        return f"built for {builds[0]}, torch for {builds[1]}: install both from one index"
    return None


def _release(version: str) -> tuple[int, int] | None:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _missing_requirements(distribution: str) -> list[str] | None:
    """Return what a distribution requires on every system and is not installed."""
    try:
        requirements = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    names = [re.match(r"[-.\w]+", line) for line in requirements if ";" not in line]
    return [name[0] for name in names if name and installed_version(name[0]) is None]


def _install(missing: list[str] | None) -> str | None:
    return f"pip install {' '.join(missing)}" if missing else None


def opencv_settings(answer: Answer) -> list[Setting]:
    """Return the OpenCV wheels, and whether cv2 can be imported; `answer` is opencv_child's."""
    installed = {name: installed_version(name) for name in OPENCV}
    wheels = [f"{name} {version}" for name, version in installed.items() if version]
    both = "they overwrite each other's cv2: uninstall all of them, then install one"
    return [
        Setting("opencv.wheels", wheels, both if len(wheels) > 1 else None),
        Setting("opencv.cv2", *_cv2(answer.told, answer)),
    ]


def _cv2(told: Mapping[str, Any], answer: Answer) -> tuple[str | None, str | None]:
    """Return the version of cv2 and what is wrong with it."""
    error = told.get("error", None if answer.is_done else f"{answer.ending}: {answer.detail}")
    if error and "libGL" in error:
        error += " (apt install libgl1, or use opencv-python-headless)"
    return told.get("version"), error
