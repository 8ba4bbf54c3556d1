"""What --weights names: published values, a file, random ones, or those a model brings along."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pttool.core.model import published, timm_models
from pttool.core.model.spec import (
    SAVED_SUFFIXES,
    ModelSpec,
    PublishedModel,
    SavedModel,
    TimmModel,
)
from pttool.errors import UsageError

DEFAULT, NONE = "DEFAULT", "none"


class Origin(StrEnum):
    """Where the values of weights come from."""

    PUBLISHED = "published"
    FILE = "file"
    RANDOM = "random"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Weights:
    """An origin; `tag` names published ones, and is the path of a file."""

    origin: Origin
    tag: str | None = None


def parse_weights(text: str, spec: ModelSpec, *, name: str) -> Weights:
    """Return what DEFAULT, TAG, FILE or none means for a model.

    DEFAULT of a model that nobody publishes is what its own code or file gives it.

    Raises UsageError for a tag that the model doesn't have, and for `none` with a saved model.
    """
    if text == NONE:
        if isinstance(spec, SavedModel):
            raise UsageError(
                f"--weights none: {name} holds its weights", "leave --weights out, or give a FILE"
            )
        return Weights(Origin.RANDOM)
    if text != DEFAULT and _looks_like_file(text):
        return Weights(Origin.FILE, text)
    match spec:
        case PublishedModel(model):
            published.check_name(model)
            return Weights(Origin.PUBLISHED, _entry(model, text).name)
        case TimmModel(model):
            timm_models.check_name(model)
            return Weights(Origin.PUBLISHED, _timm_tag(model, text))
    if text != DEFAULT:
        raise UsageError(
            f"--weights {text}: is no file", f"nobody publishes weights of {name}: give a FILE"
        )
    return Weights(Origin.MODEL)


def tagged(model: str, tag: str | None) -> str:
    """Return a timm model's name with the tag of its weights."""
    return f"{model.partition('.')[0]}.{tag}" if tag else model


def _looks_like_file(text: str) -> bool:
    path = Path(text)
    return path.suffix.lower() in SAVED_SUFFIXES or os.sep in text or path.is_file()


def _entry(model: str, text: str) -> Any:
    entry = published.weights_entry(model, text)
    if "unquantized" in entry.meta:
        raise UsageError(
            f"--weights {text}: are quantized, and so is what the layers give",
            f"take {model.removeprefix('quantized_')}, whose weights they were made from",
        )
    return entry


def _timm_tag(model: str, text: str) -> str | None:
    """Return a tag of timm's, None for the model's first; those in the model's name count."""
    if text == DEFAULT:
        return model.partition(".")[2] or None
    names = timm_models.timm().models.get_arch_pretrained_cfgs(model.partition(".")[0])
    known = [name.partition(".")[2] for name in names]
    if text not in known:
        raise UsageError(
            f"--weights: timm has no {text!r} for {model}", f"it has {', '.join(known)}"
        )
    return text
