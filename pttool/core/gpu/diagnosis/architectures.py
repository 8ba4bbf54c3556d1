"""Which GPUs the code in a build of torch can run on."""

import re
from collections.abc import Iterable

# Of modules for robots and cars, with a GPU in the processor: they run only code made for them.
# https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
INTEGRATED = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)}
ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def runs_on(architectures: Iterable[str], capability: tuple[int, int]) -> bool:
    """Whether one of the architectures, as `sm_86` or `compute_90`, runs on a compute capability.

    Machine code (sm) runs within its major version, on its own minor version and later ones; PTX
    (compute) is compiled by the driver for any later GPU; what ends in `a` only runs on its own.
    https://docs.nvidia.com/cuda/cuda-programming-guide/02-basics/nvcc.html#binary-compatibility
    """
    return any(_runs_on(architecture, capability) for architecture in architectures)


def _runs_on(architecture: str, capability: tuple[int, int]) -> bool:
    parts = ARCHITECTURE.fullmatch(architecture)
    if parts is None:
        return False
    kind, code = parts[1], (int(parts[2]), int(parts[3]))
    if parts[4] == "a" or (kind == "sm" and {code, capability} & INTEGRATED):
        return code == capability
    if kind == "compute":
        return code <= capability
    return code[0] == capability[0] and code <= capability
