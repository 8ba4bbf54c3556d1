"""Run someone's module on another device and in another mode, and give it back as it was."""

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

SEED = 0


@contextlib.contextmanager
def borrowed(
    model: nn.Module, *, device: str, training: bool, ours: bool = False
) -> Iterator[None]:
    """Move a model to `device` and set its mode for the block, then restore it exactly.

    Every submodule gets back its class and attributes (so its mode, parameters, buffers, hooks and
    the contents of lists and dicts it holds), and the random generators get back their states. The
    forward works on copies of all tensors; `ours` says that the model was made for the purpose, and
    that parameters on the device already needn't be copied.
    """
    if isinstance(model, torch.jit.ScriptModule):
        with reproducible(device), _script_on_loan(model, training):
            yield
        return
    taken = [_Snapshot(module) for module in model.modules()]
    with reproducible(device):
        try:
            _Twins(device, copy_parameters=not ours).put_into(model)
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


class _Twins:
    """Puts a tensor's twin on another device in its place, the same twin wherever it is held."""

    def __init__(self, device: str, *, copy_parameters: bool) -> None:
        self._device = device
        self._copy_parameters = copy_parameters
        self._twins: dict[int, Any] = {}

    def put_into(self, model: nn.Module) -> None:
        for module in model.modules():
            for held in (module._parameters, module._buffers, module.__dict__):
                for name, value in list(held.items()):
                    if isinstance(value, Tensor):
                        held[name] = self._of(value)

    def _of(self, tensor: Tensor) -> Any:
        if id(tensor) not in self._twins:
            self._twins[id(tensor)] = self._made(tensor)
        return self._twins[id(tensor)]

    def _made(self, tensor: Tensor) -> Tensor:
        if is_lazy(tensor):
            lazy: Any = type(tensor)
            twin: Tensor = lazy(tensor.requires_grad, device=self._device, dtype=tensor.dtype)
            return twin
        if tensor.is_meta and self._device != "meta":  # there are no values to copy
            valued = torch.zeros(tensor.shape, dtype=tensor.dtype, device=self._device)
            return nn.Parameter(valued, tensor.requires_grad) if tensor.requires_grad else valued
        if not isinstance(tensor, nn.Parameter):
            return tensor.detach().to(self._device, copy=True)
        if tensor.device.type == self._device and not self._copy_parameters:
            return tensor
        twin = tensor.detach().to(self._device, copy=True)
        if type(tensor) is type(twin):
            return twin.requires_grad_(tensor.requires_grad)
        return torch.Tensor._make_subclass(type(tensor), twin, tensor.requires_grad)


def _set_mode(model: nn.Module, training: bool) -> None:
    """Call the model's own `train`, which may keep some layers in eval mode."""
    try:
        model.train(training)
    except NotImplementedError:  # an exported program runs in the mode that it was exported in
        pass
    except RecursionError:  # torch's never ends on a module that holds itself
        for module in model.modules():
            module.training = training


@contextlib.contextmanager
def _script_on_loan(model: torch.jit.ScriptModule, training: bool) -> Iterator[None]:
    """Run a TorchScript module where it is: its attributes lie in C++. Modes and buffers return."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        model.train(training)
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)


@contextlib.contextmanager
def reproducible(device: str) -> Iterator[None]:
    """Seed Python's, numpy's and torch's generators for the block, and give back their states."""
    numpy: Any = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    gpus = range(torch.cuda.device_count()) if device == "cuda" else ()
    try:
        with torch.random.fork_rng(devices=gpus):
            random.seed(SEED)
            torch.manual_seed(SEED)
            if numpy:
                numpy.random.seed(SEED)
            yield
    finally:
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)
