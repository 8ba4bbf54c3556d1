"""A model ready to be run again and again: on its device, in its mode and memory format."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from pttool.core.foreign import foreign_code
from pttool.core.model.forward import inputs_for, on_loan
from pttool.core.model.inputs import Inputs
from pttool.core.model.macs import aten, formulas, is_uncounted
from pttool.core.model.memory import storages
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.errors import InputError, UnavailableError, UsageError

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a model is run: `training` is a forward in training mode and a backward.

    `threads` None leaves as many as torch chose. `min_time_s` is for each batch size.
    """

    training: bool = False
    channels_last: bool = False
    compiled: bool = False
    threads: int | None = None
    min_time_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Runnable:
    """A module and its inputs. `call` is what is timed: one forward, in training a backward too."""

    module: nn.Module
    inputs: Inputs
    call: Callable[[], object]

    @property
    def resident_bytes(self) -> int:
        """Bytes of parameters, buffers and inputs, each storage once."""
        held = [*self.module.parameters(), *self.module.buffers(), *self.inputs.tensors()]
        return sum(storage.nbytes() for storage in dict(storages(held)).values())


@contextlib.contextmanager
def running(
    resolved: Resolved, specs: Sequence[InputSpec], batch: int | None, conditions: Conditions
) -> Iterator[Runnable]:
    """Yield a resolved model ready to run; in the end it is as it was.

    What the model's code raises in the block is an InputError. Raises UsageError where there is no
    input for channels_last, UnavailableError where torch.compile is turned off.
    """
    training = conditions.training
    with (
        foreign_code(resolved.name),
        on_loan(resolved, training=training),
        torch.set_grad_enabled(training),
    ):
        model = resolved.module
        inputs = inputs_for(model, specs, batch, resolved.device)
        if conditions.channels_last:
            inputs = _channels_last(model, inputs)
        forward = _compiled(model) if conditions.compiled else model

        def infer() -> object:
            return forward(*inputs.positional, **inputs.named)

        def train() -> None:
            model.zero_grad()
            _backward(resolved.name, infer())

        yield Runnable(model, inputs, train if training else infer)


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[int]:
    """Have torch's operators use so many threads in the block; yield how many they use."""
    before = torch.get_num_threads()
    try:
        if number is not None:
            torch.set_num_threads(number)
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def backward_macs(runnable: Runnable) -> tuple[int, set[str]]:
    """Return the multiply-accumulates of one backward, and the operators left out of them."""
    output = runnable.module(*runnable.inputs.positional, **runnable.inputs.named)
    with _Products() as found:
        _backward("", output)
    return found.flops // 2, found.uncounted


def _channels_last(model: nn.Module, inputs: Inputs) -> Inputs:
    if not any(tensor.dim() in _FORMATS for tensor in inputs.tensors()):
        raise UsageError("--channels-last: no input has 4 or 5 dimensions", "leave it out")
    for tensor in [*model.parameters(), *model.buffers()]:
        tensor.data = _in_format(tensor.data)
    return Inputs(
        tuple(_in_format(each) if isinstance(each, Tensor) else each for each in inputs.positional),
        {name: _in_format(tensor) for name, tensor in inputs.named.items()},
    )


def _in_format(tensor: Tensor) -> Tensor:
    memory_format = _FORMATS.get(tensor.dim())
    return tensor if memory_format is None else tensor.contiguous(memory_format=memory_format)


def _compiled(model: nn.Module) -> Callable[..., object]:
    """Compile for one batch size alone: what was compiled for others would make it dynamic."""
    import torch._dynamo  # 900 modules that nothing else here needs

    if torch._dynamo.config.disable:
        raise UnavailableError("torch.compile is turned off", "unset TORCH_COMPILE_DISABLE")
    torch._dynamo.reset()
    compiled: Callable[..., object] = torch.compile(model)
    return compiled


def _backward(name: str, output: object) -> None:
    """Run the backward of all that the model put out, with gradients of one."""
    leaves: list[Any] = tree_leaves(output)
    ends = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not ends:
        raise InputError(
            f"{name}: no output of the forward has a gradient", "--mode train needs one to start at"
        )
    torch.autograd.backward(ends, [torch.ones_like(end) for end in ends])


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what the operators of a backward multiply and add."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self.uncounted: set[str] = set()
        # torch's formula is the same for the operator of each device, but it leaves out the CPU's.
        of_attention = flop_registry[aten._scaled_dot_product_flash_attention_backward]
        on_cpu = {aten._scaled_dot_product_flash_attention_for_cpu_backward: of_attention}
        self._formulas = formulas() | on_cpu

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        packet = getattr(func, "_overloadpacket", func)
        formula = self._formulas.get(packet)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=output)
        elif is_uncounted(packet):
            self.uncounted.add(str(packet))
        return output
