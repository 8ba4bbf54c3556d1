"""Globs that choose parameters and modules: one rule wherever users name layers."""

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from torch import nn

from pttool.core.model.names import parameters_by_name


def first_match(names: Iterable[str], patterns: Iterable[str]) -> str | None:
    """Return the first pattern that matches one of the names, or the name of a module around it.

    A glob matches whole names: `layer1` is all of that module, `conv1` never is `conv10`.
    """
    around = []
    for name in names:
        parts = name.split(".")
        around += [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return next((p for p in patterns if any(fnmatchcase(name, p) for name in around)), None)


def nearest(pattern: str, module: nn.Module) -> list[str]:
    """Return the three names of modules and parameters that look most like a pattern."""
    names = [name for name, _ in module.named_modules() if name]
    names += [named.name for named in parameters_by_name(module)]
    return get_close_matches(pattern, names, 3, 0.0)
