"""The models that torchvision publishes: names, weight entries, construction, input size."""

import contextlib
import inspect
import warnings
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from torch import nn

from pttool.core.foreign import stdout_to_stderr
from pttool.core.imports import without_dynamo
from pttool.core.model import detection
from pttool.core.model.spec import InputSpec
from pttool.errors import UnavailableError, UsageError

# torchvision publishes the operations of video models for clips of this many frames, and those of
# RAFT for two pictures of this size (its models' documentation).
CLIP_FRAMES = 16
FLOW_SIZE = 512


def torchvision() -> ModuleType:
    """Return torchvision. Raises UnavailableError when it is missing or doesn't fit torch."""
    try:
        with stdout_to_stderr(), warnings.catch_warnings(), without_dynamo():
            warnings.simplefilter("ignore")
            import torchvision.models
    except (Exception, SystemExit) as error:  # a broken package fails in any way
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


def weights_entry(name: str, entry: str) -> Any:
    """Return the published weights that `entry` names, as IMAGENET1K_V1, or DEFAULT.

    Raises UsageError, naming all there are, for an unknown one.
    """
    entries = torchvision().models.get_model_weights(name)
    if entry == "DEFAULT":
        return entries.DEFAULT
    if entry not in entries.__members__:
        known = ", ".join(entry.name for entry in entries)
        raise UsageError(f"--weights: {name} has no {entry!r}", f"it has {known}")
    return entries[entry]


def construct(name: str, /, *, weights: Any = None, **keywords: Any) -> nn.Module:
    """Return the model as its builder makes it, without a download.

    With `weights` it has the structure they were trained with, as torchvision publishes it, but not
    their values: fetching and loading them is left out.
    """
    model = _built(name, weights, keywords)
    if weights is None or not hasattr(model, "aux_logits") or "aux_logits" in keywords:
        return model
    # Builders drop the auxiliary classifiers after loading, but not all counts leave them out.
    if sum(p.numel() for p in model.parameters()) == weights.meta["num_params"]:
        return model
    return _built(name, weights, {**keywords, "aux_logits": True})


def _built(name: str, weights: Any, keywords: Mapping[str, Any]) -> nn.Module:
    models = torchvision().models
    parameters = inspect.signature(models.get_model_builder(name)).parameters
    # A detector's backbone weights would be fetched even with weights=None.
    backbone = {"weights_backbone": None} if "weights_backbone" in parameters else {}
    # A quantized entry publishes the parameters of the model that it was made from.
    quantize = {"quantize": False} if "quantize" in parameters else {}
    weights = weights and weights.meta.get("unquantized", weights)
    with warnings.catch_warnings(), _without_values():
        warnings.simplefilter("ignore")
        builder = models.get_model_builder(name)
        model: nn.Module = builder(**{"weights": weights, **backbone, **quantize, **keywords})
    return model


def default_inputs(name: str, module: nn.Module, weights: Any = None) -> tuple[InputSpec, ...]:
    """Return what the model's weights are evaluated on; empty if they don't say.

    Source: the `transforms()` of `weights`, or else of the first entry that the model has.
    """
    if detection.is_detector(module):
        return (detection.own_size(module),)
    size = getattr(module, "image_size", None)
    if weights is None and isinstance(size, int):  # vision transformers are made for one size
        return (InputSpec((3, size, size)),)
    if weights is None:
        with contextlib.suppress(ValueError):
            weights = next(iter(torchvision().models.get_model_weights(name)), None)
    if weights is None:
        return ()
    return _evaluated_on(weights.transforms())


def _evaluated_on(transforms: Any) -> tuple[InputSpec, ...]:
    match type(transforms).__name__:
        case "OpticalFlow":
            return (InputSpec((3, FLOW_SIZE, FLOW_SIZE)),) * 2
        case "VideoClassification":
            return (InputSpec((3, CLIP_FRAMES, *transforms.crop_size)),)
    size = getattr(transforms, "crop_size", None) or getattr(transforms, "resize_size", None)
    return (InputSpec((3, size[0], size[-1])),) if size else ()


@contextlib.contextmanager
def _without_values() -> Iterator[None]:
    """Let builders take weights without fetching their values or loading them."""
    api = torchvision().models._api.WeightsEnum
    get_state_dict, load_state_dict = api.get_state_dict, nn.Module.load_state_dict
    api.get_state_dict = lambda self, *args, **kwargs: {}
    nn.Module.load_state_dict = lambda self, *args, **kwargs: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        api.get_state_dict, nn.Module.load_state_dict = get_state_dict, load_state_dict  # type: ignore[method-assign]
