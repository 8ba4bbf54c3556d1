"""The names of modules and tensors, also of those that are held in several places."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch import Tensor, nn

MOST_NAMES = 256


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A parameter or buffer, once, with every other name that leads to it."""

    name: str
    tensor: Tensor
    aliases: tuple[str, ...]


class Names:
    """Finds the name of a module that is called from another."""

    def __init__(self, model: nn.Module) -> None:
        self._names: dict[int, str] = {id(module): name for name, module in model.named_modules()}

    def of(self, module: nn.Module, caller: nn.Module, caller_name: str) -> str:
        """Return the name under its caller where the caller holds it, else its first name."""
        inner = _path_to(module, caller)
        if inner is not None:
            return _joined(caller_name, inner)
        return self._names[id(module)]


def parameters_by_name(model: nn.Module) -> list[NamedTensor]:
    """Return the parameters, each tensor once and in order of registration.

    The packed weights of quantized layers, which torch doesn't list, are among them.
    """
    return _once(
        (_joined(prefix, name), parameter)
        for prefix, module in _walk(model)
        for name, parameter in own_parameters(module)
    )


def own_parameters(module: nn.Module) -> list[tuple[str, Tensor | None]]:
    """Return what a module itself holds; of a quantized one the packed weight and bias."""
    if not type(module).__module__.startswith("torch.ao.nn.quantized"):
        return list(module._parameters.items())
    if module not in _unpacked:
        methods = ((name, getattr(module, name, None)) for name in ("weight", "bias"))
        _unpacked[module] = [(name, method()) for name, method in methods if callable(method)]
    return _unpacked[module]


# A quantized layer unpacks a new tensor each time, but a tensor is known by its identity.
_unpacked: WeakKeyDictionary[nn.Module, list[tuple[str, Tensor | None]]] = WeakKeyDictionary()


def buffers_by_name(model: nn.Module) -> list[NamedTensor]:
    """Return the buffers, each tensor once and in order of registration."""
    return _once(
        (_joined(prefix, name), buffer)
        for prefix, module in _walk(model)
        for name, buffer in module._buffers.items()
    )


def _walk(
    module: nn.Module,
    prefix: str = "",
    holders: tuple[int, ...] = (),
    steps: Counter[int] | None = None,
) -> Iterator[tuple[str, nn.Module]]:
    """Yield every name of every submodule; a module that holds itself is entered once a path.

    Modules that share modules that share modules have exponentially many names: a module of which
    MOST_NAMES are known is not entered again.
    """
    steps = Counter() if steps is None else steps
    steps[id(module)] += 1
    yield prefix, module
    inside = (*holders, id(module))
    for name, child in module._modules.items():
        if child is not None and id(child) not in inside and steps[id(child)] < MOST_NAMES:
            yield from _walk(child, _joined(prefix, name), inside, steps)


def _once(named: Iterator[tuple[str, Tensor | None]]) -> list[NamedTensor]:
    names: dict[int, list[str]] = {}
    tensors: dict[int, Tensor] = {}
    for name, tensor in named:
        if tensor is not None:
            tensors[id(tensor)] = tensor
            names.setdefault(id(tensor), []).append(name)
    return [NamedTensor(names[key][0], tensors[key], tuple(names[key][1:])) for key in tensors]


def _path_to(module: nn.Module, holder: nn.Module) -> str | None:
    """Return the name of a module inside its holder, through containers such as ModuleList."""
    for name, child in holder._modules.items():
        if child is module:
            return name
    for name, child in holder._modules.items():
        if isinstance(child, nn.ModuleList | nn.ModuleDict | nn.Sequential):
            inner = _path_to(module, child)
            if inner is not None:
                return _joined(name, inner)
    return None


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
