"""From what the user typed to a module: `resolve` is what every command with a MODEL calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import isclass
from typing import Any

import torch
from torch import nn

from pttool.core.model import published
from pttool.core.model.build import build
from pttool.core.model.foreign import foreign_code, load_from_file, load_from_module
from pttool.core.model.spec import (
    FileModel,
    ImportedModel,
    InputSpec,
    ModelSpec,
    PublishedModel,
)
from pttool.errors import InputError, UnavailableError, UsageError


@dataclass(frozen=True, slots=True)
class Resolved:
    """A module and where it came from."""

    name: str
    source: str
    module: nn.Module
    device: str
    default_input: InputSpec | None = None


def resolve(
    spec: ModelSpec,
    keywords: Mapping[str, Any],
    *,
    name: str,
    device: str = "meta",
    dtype: str | None = None,
) -> Resolved:
    """Return the module that `spec` names, built on `device` with `keywords`.

    `name` is what the user typed for it (`spec.parse_model` reads it), used in messages and totals.

    Nothing is downloaded. With "meta" no memory is taken for weights, except where a constructor
    computes with values (see `build`); the device that came out is in the result.

    Raises UsageError for a name that doesn't exist, InputError for code that fails, and
    UnavailableError when torchvision or the device is missing.
    """
    check_device(device)
    match spec:
        case PublishedModel(published_name):
            published.check_name(published_name)
            source, default_input = "torchvision", published.default_input(published_name)
            made: Any = partial(published.construct, published_name, dict(keywords))
        case FileModel(path, attribute):
            source, default_input = str(path), None
            made = _with_keywords(name, load_from_file(path, attribute), keywords)
        case ImportedModel(module_name, attribute):
            source, default_input = module_name, None
            made = _with_keywords(name, load_from_module(module_name, attribute), keywords)
    with foreign_code(name):
        module = (
            made if isinstance(made, nn.Module) else build(_checked(name, made, keywords), device)
        )
        if dtype is not None:
            module = module.to(getattr(torch, dtype))
    return Resolved(name, source, module, device, default_input)


def check_device(device: str) -> None:
    """Raise UnavailableError when the device is not here."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UnavailableError("no CUDA device is usable here", "leave --device out to use meta")


def _with_keywords(name: str, target: Any, keywords: Mapping[str, Any]) -> Any:
    """Return a module as it is, or a function that makes one."""
    if isinstance(target, nn.Module):
        if keywords:
            raise UsageError(
                f"--kw {next(iter(keywords))}: {name} is a module already built",
                "name its class or a function that builds it",
            )
        return target
    if not callable(target):
        raise InputError(
            f"{name}: is a {type(target).__name__}, not a model",
            "name a class, a function that returns a model, or a model",
        )
    return partial(target, **keywords)


def _refused(name: str, error: TypeError, keywords: Mapping[str, Any]) -> UsageError | None:
    """Return the error of a keyword that the class or function doesn't take, if that is it."""
    for keyword in keywords:
        if f"unexpected keyword argument '{keyword}'" in str(error):
            return UsageError(f"--kw {keyword}: {name} takes no such argument", str(error))
    return None


def _checked(
    name: str, factory: Callable[[], Any], keywords: Mapping[str, Any]
) -> Callable[[], nn.Module]:
    def checked() -> nn.Module:
        try:
            module = factory()
        except TypeError as error:
            raise _refused(name, error, keywords) or error from error
        if not isinstance(module, nn.Module):
            kind = module.__name__ if isclass(module) else type(module).__name__
            raise InputError(
                f"{name}: made a {kind}, not a torch.nn.Module",
                "name a class, a function that returns a model, or a model",
            )
        return module

    return checked
