"""One forward under hooks and a dispatch mode: which modules ran, and what their operators did."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._ops import HigherOrderOperator
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from pttool.core.foreign import stdout_to_stderr
from pttool.core.model.attention import fused_attention
from pttool.core.model.batch_norm import BATCH_NORM, batch_norm_on_meta
from pttool.core.model.bounds import NOT_DATA_DEPENDENT, largest_result
from pttool.core.model.detection import is_detector, masks_kept_on_meta
from pttool.core.model.inputs import Inputs
from pttool.core.model.macs import check_dtypes, formulas, is_uncounted
from pttool.core.model.memory import ActivationBytes
from pttool.core.model.names import Names
from pttool.core.model.shapes import describe, describe_call


@dataclass(slots=True)
class Call:
    """One call of a module, with the calls made inside it."""

    module: nn.Module
    name: str
    parent: "Call | None"
    input_shape: Any
    output_shape: Any = None
    flops: int = 0
    children: list["Call"] = field(default_factory=list)

    def ancestry(self) -> Iterator["Call"]:
        """Yield the call itself, its parent, and so on up to the root."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call.parent


@dataclass(slots=True)
class Trace:
    """What one forward did.

    `flops_before_bounds` are those that don't depend on values, if an upper bound was used for any
    that do. `error` and `failing` say where the forward ended early.
    """

    activations: ActivationBytes
    root: Call | None = None
    flops: int = 0
    flops_before_bounds: int | None = None
    uncounted: set[str] = field(default_factory=set)
    error: BaseException | None = None
    failing: Call | None = None


def trace(
    model: nn.Module,
    inputs: Inputs,
    *,
    device: str,
    grad: bool,
    watching: AbstractContextManager[Any] | None = None,
) -> Trace:
    """Call the model once and return what happened; whatever it raises ends up in the result.

    The model is run where it is (see `isolation.borrowed`), on `device`, where tensors that the
    forward itself makes are put as well. `grad` runs it as for training, with autograd on. On meta,
    torchvision's detectors run with upper bounds for what depends on values. `watching` is entered
    around the forward: hooks or a dispatch mode of someone who wants to see the same.
    """
    if any(map(is_lazy, model.parameters())):
        _materialise(model, inputs, device)
    bounded = device == "meta" and any(map(is_detector, model.modules()))
    activations = ActivationBytes([*model.parameters(), *model.buffers()], inputs.tensors())
    found = Trace(activations)
    calls = _Calls(model, found, inputs)
    with (
        stdout_to_stderr(),
        hooked(model, calls.enter, calls.leave),
        # Detectors put each tensor where it belongs, and keep constants on the CPU.
        contextlib.nullcontext() if bounded else torch.device(device),
        fused_attention(),
        torch.inference_mode(False),
        torch.set_grad_enabled(grad),
        _slow_but_counted(),
        activations.saving(),
        masks_kept_on_meta() if bounded else contextlib.nullcontext(),
        watching or contextlib.nullcontext(),
        _Operators(found, calls, on_meta=device == "meta", bounded=bounded),
    ):
        try:
            output = model(*inputs.positional, **inputs.named)
            calls.root.output_shape = describe(output)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            found.error, found.failing = error, calls.that_raised(error)
    return found


def _materialise(model: nn.Module, inputs: Inputs, device: str) -> None:
    """Give lazy parameters their shapes by a first forward, so that they count as weights later.

    If it fails, so does the forward that is traced, and says where.
    """
    with (
        stdout_to_stderr(),
        torch.device(device),
        torch.no_grad(),
        contextlib.suppress(Exception, SystemExit),
    ):
        model(*inputs.positional, **inputs.named)


@contextlib.contextmanager
def _slow_but_counted() -> Iterator[None]:
    """Turn off the fused transformer encoder, an operator that does all of a layer uncounted."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextlib.contextmanager
def hooked(
    model: nn.Module, enter: Callable[..., None], leave: Callable[..., None]
) -> Iterator[None]:
    """Call `enter` (module, args, kwargs) and `leave` (module, args, output) around each module.

    `leave` is called, with None, also while an error passes through. TorchScript takes no hooks.
    """
    handles = []
    for module in model.modules():
        if not isinstance(module, torch.jit.ScriptModule):
            handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Calls:
    """Builds the tree of module calls from forward hooks."""

    def __init__(self, model: nn.Module, found: Trace, inputs: Inputs) -> None:
        # Not from a hook: TorchScript has none, and a model's own __call__ may not call it.
        self.root = Call(model, "", None, describe_call(inputs.positional, inputs.named))
        self.innermost = self.root
        found.root = self.root
        self._model = model
        self._names = Names(model)
        self._raised: list[tuple[BaseException, Call]] = []

    def enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        parent = self.innermost
        if module is self._model and parent is self.root:
            return
        name = self._names.of(module, parent.module, parent.name)
        call = Call(module, name, parent, describe_call(args, kwargs))
        parent.children.append(call)
        self.innermost = call

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        call = self.innermost
        if call.module is not module or call.parent is None:
            return
        raised = sys.exc_info()[1]  # while an error passes through, the hook is called as well
        if raised is not None and output is None:
            self._raised.append((raised, call))
        else:
            call.output_shape = describe(output)
        self.innermost = call.parent

    def that_raised(self, error: BaseException) -> Call:
        """Return the innermost call that an error came from."""
        return next((call for raised, call in self._raised if raised is error), self.root)


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the multiply-accumulates and activation bytes of every operator that runs."""

    supports_higher_order_operators = True

    def __init__(self, found: Trace, calls: _Calls, *, on_meta: bool, bounded: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found
        self._calls = calls
        self._on_meta = on_meta
        self._bounded = bounded
        self._formulas = formulas()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from guarding the mode against torch.compile, which imports torch._dynamo."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._bounded:
            largest = largest_result(func, args)
            if largest is not NOT_DATA_DEPENDENT:
                return self._bound(largest)
        is_higher_order = isinstance(func, HigherOrderOperator)
        packet = func if is_higher_order else func._overloadpacket
        formula = self._formulas.get(packet)
        if self._on_meta and packet is BATCH_NORM:
            func = batch_norm_on_meta
        elif formula is None and not is_higher_order and func.namespace != "prim":
            with self:
                output = func.decompose(*args, **kwargs)
            if output is not NotImplemented:
                return output
        if formula is not None and self._on_meta:
            check_dtypes(packet, args)
        self._found.activations.know((args, kwargs))
        output = func(*args, **kwargs)
        if formula is not None:
            self._add(formula(*args, **kwargs, out_val=output))
        elif is_uncounted(packet):
            self._found.uncounted.add(str(packet))
        self._found.activations.see(output)
        return output

    def _bound(self, largest: Any) -> Any:
        if self._found.flops_before_bounds is None:
            self._found.flops_before_bounds = self._found.flops
        self._found.activations.see(largest)
        return largest

    def _add(self, flops: int) -> None:
        self._found.flops += flops
        for call in self._calls.innermost.ancestry():
            call.flops += flops
