"""Construct a module without memory for its weights, on torch's meta device."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Factory = Callable[[], nn.Module]


def build(factory: Factory, device: str) -> nn.Module:
    """Return the module that `factory` makes, on `device` if it can be made there.

    For "meta" three ways are tried, since a constructor that computes with tensor values can't run
    there: all of it on meta; each parameter and buffer moved to meta as it is registered; the CPU.
    Any other failure of the factory is raised at once.
    """
    if device != "meta":
        with torch.device(device):
            return factory()
    for construction in (torch.device("meta"), _registered_on_meta()):
        with (
            contextlib.suppress(_NeedsValuesError),
            construction,
            _Uninitialised(),
            _naming_need_for_values(),
        ):
            return factory()
    return factory()


def needs_values(error: BaseException) -> bool:
    """Tell whether an error comes from meta tensors having no values, not from the code itself.

    torch raises RuntimeError, NotImplementedError, TypeError or ValueError for it; what they share
    is the word "meta", but for operators of other libraries, which lack a "fake impl". Code that
    says so for another reason is merely run once more.
    """
    return isinstance(error, Exception) and bool(_META.search(str(error)))


_META = re.compile(r"(?<![a-z])meta(?![a-z])|\bfake impl\b|incompatible tensor type", re.IGNORECASE)


class _Uninitialised(TorchFunctionMode):
    """Leaves out the random initialisation of meta tensors, which have no values.

    torch would do it by its reference implementations, whose first use imports torch._dynamo.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _INITIALISING:
            tensor = args[0] if args else kwargs.get("tensor")
            if isinstance(tensor, Tensor) and tensor.is_meta:
                return tensor
        return func(*args, **kwargs)


# Methods of tensors, and the functions of torch.nn.init that hand themselves over to a mode.
_INITIALISING = frozenset(
    ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "bernoulli_",
     "exponential_", "log_normal_", "random_")
)  # fmt: skip


class _NeedsValuesError(Exception):
    """The code reads the values of tensors, which meta tensors don't have."""


@contextlib.contextmanager
def _naming_need_for_values() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if needs_values(error):
            raise _NeedsValuesError from error
        raise


@contextlib.contextmanager
def _registered_on_meta() -> Iterator[None]:
    """Move each parameter and buffer to meta when a module registers it; all else stays on the CPU.

    RegNet's constructor needs this: it computes its widths with tensors.
    """
    twins: dict[int, tuple[Tensor, nn.Parameter]] = {}  # with the original, so that its id stays
    register_parameter = nn.Module.register_parameter
    register_buffer = nn.Module.register_buffer

    def parameter_on_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        register_parameter(self, name, param)
        if param is not None and not param.is_meta and not nn.parameter.is_lazy(param):
            if id(param) not in twins:
                twin = nn.Parameter(param.detach().to("meta"), requires_grad=param.requires_grad)
                twins[id(param)] = (param, twin)
            self._parameters[name] = twins[id(param)][1]

    def buffer_on_meta(
        self: nn.Module, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        register_buffer(self, name, None if tensor is None else tensor.to("meta"), persistent)

    nn.Module.register_parameter = parameter_on_meta  # type: ignore[method-assign]
    nn.Module.register_buffer = buffer_on_meta  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register_parameter  # type: ignore[method-assign]
        nn.Module.register_buffer = register_buffer  # type: ignore[method-assign]
