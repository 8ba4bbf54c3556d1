"""Freeze layers, and keep them frozen: parameters, gradients and running statistics."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from pttool.core.model.names import NamedTensor, parameters_by_name
from pttool.core.model.patterns import first_match, nearest


@dataclass(frozen=True, slots=True)
class Frozen:
    """What is frozen in a model now, and what is left to train, each tensor counted once.

    `kept_in_eval` counts the modules that stay in eval mode for the sake of their buffers.
    """

    frozen_tensors: int
    frozen_parameters: int
    trainable_tensors: int
    trainable_parameters: int
    kept_in_eval: int


def freeze(model: nn.Module, *patterns: str, bn_eval: bool = True) -> Frozen:
    """Freeze the parameters that match a pattern, in place, and count what is left to train.

    A pattern is a glob for the whole name of a parameter or of a module around it: `layer1` is all
    of that module, `conv1` never is `conv10`. `pttool model freeze` shows what would match.

    With `bn_eval` the frozen modules that hold buffers, as the running statistics of BatchNorm,
    are put into eval mode before each of their forwards, so that a later `model.train()` doesn't
    set the statistics moving again. Gradients that were there are dropped: an optimizer would
    still apply them.

    Raises ValueError for a pattern without a match, with the nearest names.
    """
    chosen: list[NamedTensor] = []
    matched: set[str] = set()
    for named in parameters_by_name(model):
        names = (named.name, *named.aliases)
        matched |= {pattern for pattern in patterns if first_match(names, [pattern])}
        if first_match(names, patterns):
            chosen.append(named)
    for pattern in patterns:
        if pattern not in matched:
            near = ", ".join(nearest(pattern, model))
            raise ValueError(f"{pattern!r} matches no parameter; nearest: {near}")
    for named in chosen:
        named.tensor.requires_grad_(False)
        named.tensor.grad = None
    still = _frozen_with_buffers(model, patterns, chosen) if bn_eval else []
    for module in still:
        module.register_forward_pre_hook(_stay_in_eval)
        module.training = False
    return _counts(model, len(still))


def _frozen_with_buffers(
    model: nn.Module, patterns: tuple[str, ...], chosen: list[NamedTensor]
) -> list[nn.Module]:
    """Return the modules that hold buffers and, of their own, only frozen parameters."""
    frozen = {id(named.tensor) for named in chosen}
    found = []
    for name, module in model.named_modules():
        own = [parameter for parameter in module._parameters.values() if parameter is not None]
        is_named = bool(first_match([name], patterns))
        is_frozen = all(id(parameter) in frozen for parameter in own) if own else is_named
        if is_frozen and any(buffer is not None for buffer in module._buffers.values()):
            found.append(module)
    return found


def _stay_in_eval(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    module.training = False


def _counts(model: nn.Module, kept_in_eval: int) -> Frozen:
    tensors = [named.tensor for named in parameters_by_name(model)]
    trainable = [tensor.numel() for tensor in tensors if tensor.requires_grad]
    frozen = [tensor.numel() for tensor in tensors if not tensor.requires_grad]
    return Frozen(len(frozen), sum(frozen), len(trainable), sum(trainable), kept_in_eval)
