"""From what the user typed to a module: `resolve` is what every command with a MODEL calls."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pttool.core.foreign import append_to_path, foreign_code, load_from_file, load_from_module
from pttool.core.model import published, saved, timm_models
from pttool.core.model.build import build
from pttool.core.model.isolation import reproducible
from pttool.core.model.spec import (
    FileModel,
    ImportedModel,
    InputSpec,
    ModelSpec,
    PublishedModel,
    SavedModel,
    TimmModel,
)
from pttool.errors import InputError, UnavailableError, UsageError


@dataclass(frozen=True, slots=True)
class Construction:
    """How a module is made: its class or function, the arguments, and the dtype it gets."""

    factory: Callable[..., Any]
    keywords: Mapping[str, Any]
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """A module, where it came from, and on which device it is to run.

    `default_inputs` are what it runs on if nothing else is said. `construction` makes it once more;
    a module that was found ready-made has none.
    """

    name: str
    source: str
    module: nn.Module
    device: str
    weights: str | None = None
    default_inputs: tuple[InputSpec, ...] = ()
    construction: Construction | None = None
    is_state_dict: bool = False

    def on(self, device: str) -> "Resolved":
        """Return it on another device, made anew where that is possible."""
        if self.construction is None:
            return replace(self, device=device)
        return replace(self, module=_made(self.name, self.construction, device), device=device)


def resolve(
    spec: ModelSpec,
    keywords: Mapping[str, Any],
    *,
    name: str,
    weights: str | None = None,
    device: str = "meta",
    dtype: str | None = None,
    trust_pickle: bool = False,
) -> Resolved:
    """Return the module that `spec` names, made on `device` with `keywords`.

    `name` is what the user typed for it (`spec.parse_model` reads it), used in messages and totals.
    `weights` names an entry that torchvision publishes, whose structure the module then has;
    `trust_pickle` lets a file's whole pickled module be loaded, which runs its code.

    Nothing is downloaded. With "meta" no memory is taken for weights, except where a constructor
    computes with values (see `build`).

    Raises UsageError for a name that doesn't exist, InputError for code that fails, and
    UnavailableError when torchvision or the device is missing.
    """
    check_device(device)
    if isinstance(spec, PublishedModel):
        return _published(spec.name, keywords, weights, device, dtype)
    if weights is not None:
        raise UsageError(
            f"--weights {weights}: {name} is not a torchvision name",
            "weight entries are torchvision's; give other arguments with --kw",
        )
    match spec:
        case TimmModel(timm_name):
            return _of_timm(
                name, timm_name, Construction(timm_models.construct, keywords, dtype), device
            )
        case SavedModel(path):
            _check_no_keywords(name, keywords)
            return _of_file(name, path, trust_pickle, device, dtype)
        case FileModel(path, attribute):
            source, target = str(path), load_from_file(path, attribute)
        case ImportedModel(module_name, attribute):
            source, target = module_name, load_from_module(module_name, attribute)
    if isinstance(target, nn.Module):
        _check_no_keywords(name, keywords)
        with foreign_code(name):
            module = target if dtype is None else target.to(_dtype(dtype))
        return Resolved(name, source, module, device)
    if not callable(target):
        raise InputError(
            f"{name}: is of type {type(target).__name__}, not a model",
            "name a class, a function that returns a model, or a model",
        )
    construction = Construction(target, keywords, dtype)
    module = _made(name, construction, device)
    return Resolved(name, source, module, device, construction=construction)


def check_device(device: str) -> None:
    """Raise UnavailableError when the device is not here."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UnavailableError("no CUDA device is usable here", "leave --device out")


def _published(
    name: str, keywords: Mapping[str, Any], weights: str | None, device: str, dtype: str | None
) -> Resolved:
    published.check_name(name)
    for keyword in ("weights", "pretrained"):
        if keyword in keywords:
            raise UsageError(f"--kw {keyword}: weights are not loaded", "--weights ENTRY")
    entry = None if weights is None else published.weights_entry(name, weights)
    factory = partial(published.construct, name, weights=entry)
    construction = Construction(factory, keywords, dtype)
    module = _made(name, construction, device)
    return Resolved(
        name,
        "torchvision",
        module,
        device,
        None if entry is None else entry.name,
        published.default_inputs(name, module, entry),
        construction,
    )


def _of_timm(name: str, timm_name: str, construction: Construction, device: str) -> Resolved:
    timm_models.check_name(timm_name)
    factory = partial(construction.factory, timm_name)
    construction = replace(construction, factory=factory)
    module = _made(name, construction, device)
    inputs = timm_models.default_inputs(module)
    return Resolved(name, "timm", module, device, None, inputs, construction)


def _of_file(name: str, path: Path, trust_pickle: bool, device: str, dtype: str | None) -> Resolved:
    if trust_pickle:
        append_to_path()  # where the classes of a pickled model mostly are
    found = saved.load(path, trust_pickle=trust_pickle)
    with foreign_code(name):
        module = found.module if dtype is None else found.module.to(_dtype(dtype))
    return Resolved(
        name,
        found.source,
        module,
        found.device if device == "meta" else device,
        default_inputs=found.default_inputs,
        is_state_dict=found.is_state_dict,
    )


def _check_no_keywords(name: str, keywords: Mapping[str, Any]) -> None:
    if keywords:
        raise UsageError(
            f"--kw {next(iter(keywords))}: {name} is a module already built",
            "name its class or a function that builds it",
        )


def _made(name: str, construction: Construction, device: str) -> nn.Module:
    with foreign_code(name), reproducible(device):
        module = build(partial(_call, name, construction), device)
        return module if construction.dtype is None else module.to(_dtype(construction.dtype))


def _dtype(name: str) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _call(name: str, construction: Construction) -> nn.Module:
    keywords = construction.keywords
    try:
        module = construction.factory(**keywords)
    except TypeError as error:
        raise _refused(name, error, keywords) or error from error
    if inspect.iscoroutine(module):
        module.close()
    if not isinstance(module, nn.Module):
        kind = module.__name__ if inspect.isclass(module) else type(module).__name__
        raise InputError(
            f"{name}: made an object of type {kind}, not a torch.nn.Module",
            "name a class, a function that returns a model, or a model",
        )
    return module


def _refused(name: str, error: TypeError, keywords: Mapping[str, Any]) -> UsageError | None:
    """Return the error of a keyword that the class or function doesn't take, if that is it."""
    for keyword in keywords:
        if f"unexpected keyword argument '{keyword}'" in str(error):
            return UsageError(f"--kw {keyword}: {name} takes no such argument", str(error))
    return None
