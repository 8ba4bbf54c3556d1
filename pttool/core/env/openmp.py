"""The OpenMP runtimes that packages bring along: two in one process multiply threads, or abort."""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pttool.core.env.setting import Setting

RUNTIME = re.compile(r"lib(gomp|iomp5|omp)(?:[-.][-\w.]*)?\.(?:so|dylib)[.\d]*")
PLACES = ("*/lib", "*.libs", "*/.libs", "*/.dylibs")  # in site-packages, where wheels keep them
TWICE = "OMP: Error #15 ends a process that loads both: keep one (conda install nomkl, or pip only)"
MIXED = "GNU's and Intel's or LLVM's in one process each start their threads: set OMP_NUM_THREADS"


def openmp_settings(loaded: list[str] | None) -> list[Setting]:
    """Return the runtimes that are installed, and those that torch loads, as it told itself."""
    installed = _installed([Path(entry) for entry in sys.path if entry], Path(sys.prefix, "lib"))
    shown = ", ".join("/".join(path.parts[-3:]) for path in installed)
    return [
        Setting("openmp.installed", [str(path) for path in installed], _clash(installed), shown),
        Setting("openmp.loaded_by_torch", loaded),
    ]


def _installed(site_packages: Sequence[Path], environment: Path) -> list[Path]:
    """Return the files of all runtimes, each once, whatever links lead to it."""
    folders = [environment]
    for site in site_packages:
        for place in PLACES:
            folders += site.glob(place)
    found = {file.resolve() for folder in folders for file in folder.glob("lib*omp*")}
    return sorted(file for file in found if RUNTIME.fullmatch(file.name))


def _clash(runtimes: Iterable[Path]) -> str | None:
    kinds = [match[1] for path in runtimes if (match := RUNTIME.fullmatch(path.name))]
    # Intel's runtime is LLVM's: https://openmp.llvm.org
    related = sum(kind != "gomp" for kind in kinds)
    if related > 1:
        return TWICE
    return MIXED if related and "gomp" in kinds else None
