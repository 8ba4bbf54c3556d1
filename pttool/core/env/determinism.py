"""What a run needs set to give the same numbers twice: the one list of it.

`pttool.recipes.seed_everything(deterministic=True)` sets these; `pttool env` reads them. Switches
live inside a process, and no other process can see them: `pttool env` can only tell what a new one
starts with. Environment variables are inherited, so those it can check.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable, the value to set, and all values that do."""

    name: str
    value: str
    accepted: frozenset[str] | None
    only_cuda: bool
    why: str

    def is_met(self, environ: Mapping[str, str]) -> bool:
        """Whether the environment has a value that makes runs repeatable."""
        value = environ.get(self.name)
        if value is None:
            return False
        return value in self.accepted if self.accepted is not None else _is_hash_seed(value)


@dataclass(frozen=True, slots=True)
class Switch:
    """A setting of torch inside a process: how it is read, and what it has to be."""

    name: str
    wanted: bool


# https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED, and
# https://docs.nvidia.com/cuda/cublas/#results-reproducibility
VARIABLES = (
    Variable(
        "PYTHONHASHSEED", "0", None, False, "the order of a set of strings changes with each run"
    ),
    Variable(
        "CUBLAS_WORKSPACE_CONFIG",
        ":4096:8",
        frozenset({":4096:8", ":16:8"}),
        True,
        "matrix products on a GPU may differ from run to run",
    ),
)

# https://docs.pytorch.org/docs/stable/notes/randomness.html
SWITCHES = (
    Switch("deterministic_algorithms", True),
    Switch("cudnn_deterministic", True),
    Switch("cudnn_benchmark", False),
)


def unmet_variables(environ: Mapping[str, str], *, cuda: bool) -> list[Variable]:
    """Return the variables that keep a run from repeating; cuBLAS's only where torch has CUDA."""
    needed = (variable for variable in VARIABLES if cuda or not variable.only_cuda)
    return [variable for variable in needed if not variable.is_met(environ)]


def unmet_switches(values: Mapping[str, bool]) -> list[Switch]:
    """Return the switches that have another value than a repeatable run needs."""
    return [switch for switch in SWITCHES if values[switch.name] is not switch.wanted]


def _is_hash_seed(text: str) -> bool:
    """Whether Python takes it for a fixed seed: a whole number of 32 bits, not `random`."""
    return text.isascii() and text.isdecimal() and int(text) < 1 << 32
