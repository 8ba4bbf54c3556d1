"""Run someone's module on another device and in another mode, and give it back as it was."""

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy


@contextlib.contextmanager
def borrowed(model: nn.Module, *, device: str, training: bool) -> Iterator[None]:
    """Move a model to `device` and set its mode for the block, then restore it exactly.

    Every submodule gets back its attributes (so its mode, parameters, buffers, hooks and lazy
    class), and the random generators their states. Parameters already on `device` are not copied;
    buffers are, since a forward may write to them.
    """
    taken = [_Snapshot(module) for module in model.modules()]
    with _random_states():
        try:
            _replace_tensors(model, device)
            _set_mode(model, training)
            yield
        finally:
            for snapshot in taken:
                snapshot.restore()


class _Snapshot:
    """A module's class and attributes; the containers among these keep their identity."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._class = type(module)
        self._attributes = dict(module.__dict__)
        self._dicts = [(v, dict(v)) for v in self._attributes.values() if isinstance(v, dict)]
        self._lists = [(v, list(v)) for v in self._attributes.values() if isinstance(v, list)]
        self._sets = [(v, set(v)) for v in self._attributes.values() if isinstance(v, set)]

    def restore(self) -> None:
        if type(self._module) is not self._class:
            self._module.__class__ = self._class
        self._module.__dict__.clear()
        self._module.__dict__.update(self._attributes)
        for mapping, items in self._dicts:
            mapping.clear()
            mapping.update(items)
        for members, elements in self._sets:
            members.clear()
            members.update(elements)
        for sequence, values in self._lists:
            sequence[:] = values


def _replace_tensors(model: nn.Module, device: str) -> None:
    twins: dict[int, Tensor] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.device.type != device:
                twin = twins.setdefault(id(parameter), _parameter_twin(parameter, device))
                module._parameters[name] = twin  # type: ignore[assignment]
        for name, buffer in module._buffers.items():
            if buffer is not None and not is_lazy(buffer):
                module._buffers[name] = twins.setdefault(
                    id(buffer), buffer.detach().to(device, copy=True)
                )


def _set_mode(model: nn.Module, training: bool) -> None:
    """Call the model's own `train`, which may keep some layers in eval mode."""
    try:
        model.train(training)
    except RecursionError:  # torch's never ends on a module that holds itself
        for module in model.modules():
            module.training = training


def _parameter_twin(parameter: nn.Parameter, device: str) -> Tensor:
    if is_lazy(parameter):
        return nn.UninitializedParameter(parameter.requires_grad, torch.device(device))
    return nn.Parameter(parameter.detach().to(device), requires_grad=parameter.requires_grad)


@contextlib.contextmanager
def _random_states() -> Iterator[None]:
    """Keep the states of Python's, numpy's and torch's generators."""
    numpy: Any = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)
