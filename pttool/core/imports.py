"""Keep torch.compile's front end from being imported by code that compiles nothing."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

DYNAMO, UTILS = "torch._dynamo", "torch._dynamo.utils"


@contextlib.contextmanager
def without_dynamo() -> Iterator[None]:
    """Put off the import of torch._dynamo, in the block, until something really needs it.

    Two places import its 900 modules for next to nothing: torchvision.ops.roi_align for the
    predicate `is_compile_supported`, and torch's reference operators, which serve the meta device,
    to be left alone by torch.compile. Stand-ins give them what they ask for; any other use of the
    package brings the real one. What torch would mark in the block as not to be compiled stays
    unmarked, which is why the block is for one forward, run as it is.
    """
    if DYNAMO in sys.modules:
        yield
        return
    sys.modules[DYNAMO] = _StandIn(DYNAMO, {"disable": _as_it_is})
    sys.modules[UTILS] = _StandIn(UTILS, {"is_compile_supported": _is_compile_supported})
    try:
        yield
    finally:
        _remove_stand_ins()


class _StandIn(ModuleType):
    """A module that knows a few names, and gives way to the real one when asked for others."""

    def __init__(self, name: str, known: dict[str, object]) -> None:
        super().__init__(name)
        self.__dict__.update(known)

    def __getattr__(self, attribute: str) -> Any:
        # Whoever looks through all modules asks for __file__ and the like; the __path__ of the
        # package is asked for by the import of another submodule.
        if attribute.startswith("__") and (attribute, self.__name__) != ("__path__", DYNAMO):
            raise AttributeError(attribute)
        _remove_stand_ins()
        return getattr(importlib.import_module(self.__name__), attribute)


def _remove_stand_ins() -> None:
    for name in (DYNAMO, UTILS):
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]


def _as_it_is(function: object, *_: object, **__: object) -> object:
    return function


def _is_compile_supported(device: object) -> object:
    _remove_stand_ins()
    return importlib.import_module(UTILS).is_compile_supported(device)
