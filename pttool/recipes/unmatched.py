"""What to say of a pattern that no name of a model matches."""

from torch import nn

from pttool.core.model.patterns import nearest


def unmatched(pattern: str, model: nn.Module) -> ValueError:
    """Return the error, with the nearest names of modules and parameters."""
    near = ", ".join(nearest(pattern, model))
    return ValueError(f"{pattern!r} matches no parameter or module; nearest: {near}")
