"""What only torch itself can tell, from its C library: a third of the time of `import torch`.

`tell_all` runs in a child process. The library is loaded under an empty package that stands in for
torch's own; where that fails, `import torch` in full has the last word.
"""

import contextlib
import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

READ = {
    "intra_threads": "get_num_threads",
    "inter_threads": "get_num_interop_threads",
    "deterministic_algorithms": "_get_deterministic_algorithms",
    "cudnn_deterministic": "_get_cudnn_deterministic",
    "cudnn_benchmark": "_get_cudnn_benchmark",
    "matmul_tf32": "_get_cublas_allow_tf32",
    "cudnn_tf32": "_get_cudnn_allow_tf32",
    "matmul_precision": "_get_float32_matmul_precision",
}
TRIGGERED = re.compile(r" \(Triggered internally at .*\)$")  # a line of torch's own source
OPENMP = re.compile(r"/lib(?:gomp|iomp5|omp)[-.\w]*\.so[.\d]*$")


def tell_all(tell: Callable[..., None]) -> None:
    """Tell what torch's C library says; `error` where torch can't be imported.

    `cuda_devices` comes last, as it asks the driver, with torch's warning as `cuda_warning`.
    """
    try:
        library = _library()
    except Exception as error:  # a broken torch fails in any way
        tell(error=f"{type(error).__name__}: {' '.join(str(error).split())}")
        return
    tell(**{name: _value(library, function) for name, function in READ.items()})
    tell(**_pool_sizes(_value(library, "_parallel_info") or ""), openmp=_loaded_openmp())
    tell(arch_list=(_value(library, "_cuda_getArchFlags") or "").split() or None)
    tell(nccl=_nccl(_value(library, "_nccl_version")), cudnn=_cudnn(library))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        count = _value(library, "_cuda_getDeviceCount")
    words = TRIGGERED.sub("", " ".join(str(caught[0].message).split())) if caught else None
    tell(cuda_devices=count, cuda_warning=words)


def _library() -> Any:
    """Return the module torch._C, without the rest of torch if it loads so."""
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.submodule_search_locations is not None:
        package = ModuleType("torch")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["torch"] = package
        with contextlib.suppress(Exception):
            return importlib.import_module("torch._C")
        for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
            del sys.modules[name]
    return importlib.import_module("torch")._C


def _value(library: Any, function: str) -> Any:
    """Return what a function without arguments says; None where this torch has no such thing."""
    try:
        return getattr(library, function)()
    except (AttributeError, RuntimeError):
        return None


def _pool_sizes(parallel_info: str) -> dict[str, int | None]:
    """Return the threads of OpenMP and MKL, from the text of torch.__config__.parallel_info()."""
    sizes = {}
    for name in ("omp", "mkl"):
        found = re.search(rf"{name}_get_max_threads\(\) : (\d+)", parallel_info)
        sizes[f"{name}_threads"] = int(found[1]) if found else None
    return sizes


def _loaded_openmp() -> list[str] | None:
    """Return the paths of the OpenMP runtimes that torch has brought into the process."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return None
    paths = {line.split(maxsplit=5)[-1] for line in lines}
    return sorted(path for path in paths if OPENMP.search(path))


def _cudnn(library: Any) -> str | None:
    part = getattr(library, "_cudnn", None)
    version = None if part is None else _value(part, "getRuntimeVersion")
    return None if version is None else ".".join(map(str, version))


def _nccl(version: int | None) -> str | None:
    """Return major.minor.patch, which torch packs in 32, 16 and 16 bits."""
    if version is None:
        return None
    return f"{version >> 32}.{version >> 16 & 0xFFFF}.{version & 0xFFFF}"
