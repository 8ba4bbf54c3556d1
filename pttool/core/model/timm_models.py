"""The models of timm: names, construction without weights, input size."""

import warnings
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from torch import nn

from pttool.core.model.spec import InputSpec
from pttool.errors import UnavailableError, UsageError


def timm() -> ModuleType:
    """Return timm. Raises UnavailableError when it is missing."""
    try:
        import timm
    except ModuleNotFoundError as error:
        raise UnavailableError("timm: models need timm", "pip install timm") from error
    module: ModuleType = timm
    return module


def check_name(name: str) -> None:
    """Raise UsageError, with the three nearest names, for a name that timm doesn't have."""
    if not timm().is_model(name):
        nearest = ", ".join(get_close_matches(name, timm().list_models(), 3, 0.0))
        raise UsageError(f"no model {name!r} in timm", f"nearest: {nearest}")


def construct(name: str, /, **keywords: Any) -> nn.Module:
    """Return the model without weights and without a download."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: nn.Module = timm().create_model(name, pretrained=False, **keywords)
    return model


def default_inputs(module: nn.Module) -> tuple[InputSpec, ...]:
    """Return the image size in the model's configuration; empty if it has none."""
    configuration: Any = getattr(module, "pretrained_cfg", None) or {}
    size = configuration.get("input_size")
    return (InputSpec(tuple(size)),) if size else ()
