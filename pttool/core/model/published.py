"""The models that torchvision publishes: their names, their construction, their input size."""

import contextlib
import inspect
import warnings
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from torch import nn

from pttool.core.imports import uncollected, without_dynamo
from pttool.core.model.spec import InputSpec
from pttool.errors import UnavailableError, UsageError


def torchvision() -> ModuleType:
    """Return torchvision. Raises UnavailableError when it is missing or doesn't fit torch."""
    try:
        with warnings.catch_warnings(), uncollected(), without_dynamo():
            warnings.simplefilter("ignore")
            import torchvision.models
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        import torch

        reason = " ".join(str(error).split())
        raise UnavailableError(
            f"torchvision can't be imported: {reason}",
            f"install the torchvision that fits torch {torch.__version__}: "
            "pip install --upgrade torchvision",
        ) from error
    module: ModuleType = torchvision
    return module


def check_name(name: str) -> None:
    """Raise UsageError, with the three nearest names, for a name that torchvision doesn't have."""
    names = torchvision().models.list_models()
    if name not in names:
        nearest = ", ".join(get_close_matches(name.lower(), names, 3, 0.0))
        raise UsageError(f"no model {name!r} in torchvision", f"nearest: {nearest}")


def construct(name: str, keywords: dict[str, Any]) -> nn.Module:
    """Return the model as its builder makes it, without weights and without a download."""
    models = torchvision().models
    parameters = inspect.signature(models.get_model_builder(name)).parameters
    # A detector's backbone weights would be fetched even with weights=None.
    backbone = {"weights_backbone": None} if "weights_backbone" in parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: nn.Module = models.get_model(name, **{"weights": None, **backbone, **keywords})
    return model


def default_input(name: str) -> InputSpec | None:
    """Return the size that the model's own weights are evaluated at, or None if they name none.

    Source: the `transforms()` of torchvision's default weights.
    """
    with contextlib.suppress(ValueError):
        weights = torchvision().models.get_model_weights(name)
        transforms = next(iter(weights)).transforms()
        size = getattr(transforms, "crop_size", None)
        if size and len(size) == 1:
            return InputSpec((3, size[0], size[0]))
    return None
