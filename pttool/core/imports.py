"""Import large libraries in less time: what `import torch` and `import torchvision` needn't do."""

import contextlib
import gc
import sys
from collections.abc import Iterator
from types import ModuleType


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector off the objects that the imports in the block make.

    They live as long as the process; walking them again and again takes a fifth of `import torch`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def without_dynamo() -> Iterator[None]:
    """Keep torch._dynamo, torch.compile's front end, from being imported in the block.

    Two places import its 900 modules for next to nothing: torchvision.ops.roi_align for the
    predicate `is_compile_supported`, and torch's reference operators, which serve the meta device,
    to be left alone by torch.compile. In the block a stand-in gives both. Only for code that is
    known not to compile anything: torchvision's own models.
    """
    if "torch._dynamo" in sys.modules:
        yield
        return
    package, utils = ModuleType("torch._dynamo"), ModuleType("torch._dynamo.utils")
    package.__path__ = []
    package.disable = _as_it_is  # type: ignore[attr-defined]
    utils.is_compile_supported = _is_compile_supported  # type: ignore[attr-defined]
    stand_ins = {"torch._dynamo": package, "torch._dynamo.utils": utils}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


def _as_it_is(function: object, *_: object, **__: object) -> object:
    return function


def _is_compile_supported(device: object) -> object:
    from torch._dynamo.utils import is_compile_supported

    return is_compile_supported(device)  # type: ignore[arg-type]
