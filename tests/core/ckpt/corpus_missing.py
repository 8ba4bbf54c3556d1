"""A package that is there only while the corpus is written and while the oracle reads it."""

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

PACKAGE = "gone_pkg"
MODULE = f"{PACKAGE}.models"


class Det(nn.Module):
    """A detector, with what a state dict leaves out: a plain tensor, a non-persistent buffer."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.stride = torch.tensor([8.0, 16.0])
        self.names = ["person", "car"]
        self.register_buffer("anchors", torch.ones(3), persistent=False)
        self.register_buffer("grid", torch.ones(2))


class Config:
    """Settings in a plain object."""

    def __init__(self) -> None:
        self.lr = 1e-3
        self.device = "cuda:1"


class Slotted:
    """An object whose state is a tuple: no __dict__, and slots."""

    __slots__ = ("mean", "name")

    def __init__(self) -> None:
        self.mean = torch.arange(3.0)
        self.name = "slots"


class Labelled(torch.Tensor):
    """A subclass of tensor."""


CLASSES: tuple[type, ...] = (Det, Config, Slotted, Labelled)
for _class in CLASSES:
    _class.__module__ = MODULE


@contextmanager
def missing_package() -> Iterator[None]:
    """Make the package importable for a while."""
    if PACKAGE in sys.modules:
        yield
        return
    package, models = types.ModuleType(PACKAGE), types.ModuleType(MODULE)
    for one in CLASSES:
        setattr(models, one.__name__, one)
    sys.modules.update({PACKAGE: package, MODULE: models})
    try:
        yield
    finally:
        del sys.modules[PACKAGE], sys.modules[MODULE]
