"""MODEL with the values of its weights, and the preprocessing they were trained with."""

import contextlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pttool.core.features import preprocessing
from pttool.core.features.fetching import fetch_entry, timm_file, unavailable
from pttool.core.features.preprocessing import Preprocessing
from pttool.core.features.state_dicts import fingerprint, load_strictly
from pttool.core.features.weights import DEFAULT, Origin, Weights, parse_weights, tagged
from pttool.core.foreign import foreign_code
from pttool.core.model import published, timm_models
from pttool.core.model.isolation import reproducible
from pttool.core.model.resolve import Resolved, check_device, resolve
from pttool.core.model.spec import ModelSpec, PublishedModel, SavedModel, TimmModel
from pttool.errors import InputError


@dataclass(frozen=True, slots=True)
class Plan:
    """A model without values, the weights that `load` will give it, and its preprocessing."""

    spec: ModelSpec
    keywords: Mapping[str, Any]
    resolved: Resolved
    weights: Weights
    preprocessing: Preprocessing
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module in eval mode on its device, and what a manifest says of it.

    `description` holds `weights_sha256`, the hash of all values, by which one run knows another's.
    """

    name: str
    module: nn.Module
    device: str
    description: Mapping[str, Any]


def plan(
    spec: ModelSpec,
    keywords: Mapping[str, Any],
    *,
    name: str,
    weights: str = DEFAULT,
    imagenet_val: bool = False,
    trust_pickle: bool = False,
) -> Plan:
    """Return what is to be loaded, its module on meta: layers are named before any download.

    `weights` is DEFAULT, a published tag, none or a file. The preprocessing is that of the weights;
    with none or a file that of DEFAULT; the recipe for ImageNet with `imagenet_val`, and for models
    that have none of their own, which is noted.

    Raises UsageError for weights that the model doesn't have and for a model of clips or pairs of
    pictures, InputError for a state dict, and as `model.resolve.resolve` does.
    """
    given = parse_weights(weights, spec, name=name)
    tag = given.tag if given.origin is Origin.PUBLISHED else None
    if isinstance(spec, TimmModel):
        spec, tag = TimmModel(tagged(spec.name, tag)), None
    resolved = resolve(spec, keywords, name=name, weights=tag, trust_pickle=trust_pickle)
    if resolved.is_state_dict:
        raise InputError(
            f"{name}: is a state dict, weights without a model to run",
            f"give the model, and --weights {name}",
        )
    chosen = preprocessing.imagenet_val() if imagenet_val else _own_preprocessing(spec, resolved)
    notes = _notes(given, name)
    if chosen is None:
        chosen = preprocessing.imagenet_val()
        notes += (f"{name} has no preprocessing of its own: that of --imagenet-val is used",)
    return Plan(spec, keywords, resolved, given, chosen, notes)


def load(plan: Plan, *, seed: int = 0, device: str = "cpu", dtype: str = "float32") -> Loaded:
    """Return the module with its values, in eval mode, on `device` ("cpu" or "cuda").

    `seed` is for what its constructor draws. `dtype` is torch's name of a floating-point type.

    Raises UnavailableError for a device or published weights that aren't here and can't be fetched,
    within about two seconds when there is no network; InputError for a file that doesn't fit.
    """
    name, weights = plan.resolved.name, plan.weights
    check_device(device)
    with foreign_code(name), seeded(seed):
        module = _with_values(plan)
        if weights.origin is Origin.FILE:
            load_strictly(module, Path(str(weights.tag)), name=name)
        digest = fingerprint(module)
        module = module.eval().to(device=device, dtype=getattr(torch, dtype))
    description = {
        "model": name,
        "source": plan.resolved.source,
        "keywords": dict(plan.keywords),
        "weights": _described(plan),
        "seed": seed if weights.origin in (Origin.RANDOM, Origin.MODEL) else None,
        "weights_sha256": digest,
    }
    return Loaded(name, module, device, description)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw the same numbers in every run of the block, which leaves the generators as they were."""
    with reproducible("cpu"):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        yield


def _own_preprocessing(spec: ModelSpec, resolved: Resolved) -> Preprocessing | None:
    match spec:
        case PublishedModel(model):
            entry = (
                published.weights_entry(model, resolved.weights)
                if resolved.weights
                else preprocessing.fitting_entry(model, resolved.module)
            )
            return entry and preprocessing.of_entry(entry)
        case TimmModel():
            return preprocessing.of_timm(resolved.name, resolved.module)
    return None


def _notes(weights: Weights, name: str) -> tuple[str, ...]:
    match weights.origin:
        case Origin.RANDOM:
            return (f"{name} has random weights, so that its features tell little of pictures",)
        case Origin.MODEL:
            return (f"{name} has the weights that it comes with; --weights FILE loads others",)
    return ()


def _described(plan: Plan) -> str:
    if plan.weights.origin is Origin.PUBLISHED and isinstance(plan.spec, TimmModel):
        configuration = getattr(plan.resolved.module, "pretrained_cfg", None) or {}
        return configuration.get("tag") or DEFAULT
    return plan.weights.tag or plan.weights.origin.value


def _with_values(plan: Plan) -> nn.Module:
    resolved, published_values = plan.resolved, plan.weights.origin is Origin.PUBLISHED
    match plan.spec:
        case PublishedModel(model) if published_values:
            return _of_torchvision(model, plan)
        case TimmModel(model) if published_values:
            return _of_timm(model, plan)
        case SavedModel(path):  # a pickled module: `resolve` has asked whether it is trusted
            module: nn.Module = torch.load(path, map_location="cpu", weights_only=False)
            return module
    if resolved.construction is None:
        return resolved.module
    built: nn.Module = resolved.construction.factory(**resolved.construction.keywords)
    return built


def _of_torchvision(model: str, plan: Plan) -> nn.Module:
    entry = published.weights_entry(model, str(plan.weights.tag))
    fetch_entry(entry)
    module: nn.Module = published.torchvision().models.get_model(
        model, weights=entry, **plan.keywords
    )
    return module


def _of_timm(model: str, plan: Plan) -> nn.Module:
    configuration = getattr(plan.resolved.module, "pretrained_cfg", None) or {}
    path = timm_file(configuration, plan.resolved.name)
    overlay = {"file": path} if path else None
    with contextlib.nullcontext() if path else unavailable(plan.resolved.name):
        module: nn.Module = timm_models.timm().create_model(
            model, pretrained=True, pretrained_cfg_overlay=overlay, **plan.keywords
        )
    return module
