"""The names that torch.load(weights_only=True) imports, and those that a user vouches for."""

import _compat_pickle
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from pttool.core.ckpt.pickles.nodes import Global

# torch._weights_only_unpickler._get_allowed_globals() of torch 2.14, written by `make generate`.
TORCH_GLOBALS = Path(__file__).parents[3] / "data" / "torch_globals.txt"
# Source: torch._weights_only_unpickler._blocklisted_modules, which no user can allow either.
BLOCKED_MODULES = ("sys", "os", "posix", "nt")


def is_allowed(found: Global, extra: Sequence[str] = ()) -> bool:
    """Whether torch allows a name by default, or one of the patterns (as `mmengine.*`) fits it."""
    name = in_python_3(found)
    if name.module in BLOCKED_MODULES:
        return False
    return name.path in torch_globals() or any(fnmatchcase(name.path, each) for each in extra)


@cache
def torch_globals() -> frozenset[str]:
    """Return the dotted names that torch allows by default."""
    return frozenset(TORCH_GLOBALS.read_text(encoding="utf-8").split())


def in_python_3(found: Global) -> Global:
    """Return what unpicklers import for a name of Python 2, as __builtin__.set."""
    renamed = _compat_pickle.NAME_MAPPING.get((found.module, found.name))
    if renamed is not None:
        return Global(*renamed)
    return Global(_compat_pickle.IMPORT_MAPPING.get(found.module, found.module), found.name)
