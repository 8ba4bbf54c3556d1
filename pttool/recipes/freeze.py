"""Freeze layers, and keep them frozen: parameters, gradients and running statistics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from pttool.core.model.names import NamedTensor, buffers_by_name, parameters_by_name
from pttool.core.model.patterns import first_match
from pttool.recipes.unmatched import unmatched


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

    A pattern is a glob for the whole name of a parameter, of a module around it, or of a module
    that holds buffers: `layer1` is all of that module, `conv1` never is `conv10`. `pttool model
    freeze` shows which parameters would match.

    With `bn_eval` the frozen modules that hold buffers, as the running statistics of BatchNorm,
    are put into eval mode before each of their forwards, so that a later `model.train()` doesn't
    set the statistics moving again. That is a hook: freeze after what replaces modules, as
    `convert_sync_batchnorm` does. Gradients that were there are dropped: an optimizer would still
    apply them.

    Raises ValueError for a pattern without a match, with the nearest names.
    """
    parameters = parameters_by_name(model)
    holders = _buffer_holders(model)
    names = [(named.name, *named.aliases) for named in parameters] + list(holders.values())
    for pattern in patterns:
        if not any(first_match(each, [pattern]) for each in names):
            raise unmatched(pattern, model)
    chosen = [each for each in parameters if first_match((each.name, *each.aliases), patterns)]
    for named in chosen:
        named.tensor.requires_grad_(False)
        named.tensor.grad = None
    if bn_eval:
        for module, called in holders.items():
            if _is_frozen(module, called, patterns, chosen):
                _keep_in_eval(module)
    return _counts(model)


def _buffer_holders(model: nn.Module) -> dict[nn.Module, tuple[str, ...]]:
    """Return the modules that hold buffers of their own, with all their names."""
    holders: dict[nn.Module, tuple[str, ...]] = {}
    for named in buffers_by_name(model):
        for name in (named.name, *named.aliases):
            called = name.rpartition(".")[0]
            module = model.get_submodule(called)
            holders[module] = (*holders.get(module, ()), called)
    return holders


def _is_frozen(
    module: nn.Module,
    called: Sequence[str],
    patterns: Sequence[str],
    chosen: Sequence[NamedTensor],
) -> bool:
    """Whether all that a module itself holds is frozen, some of it now; or it is named itself."""
    own = [parameter for parameter in module._parameters.values() if parameter is not None]
    if not own:
        return first_match(called, patterns) is not None
    now = {id(named.tensor) for named in chosen}
    return any(id(each) in now for each in own) and not any(each.requires_grad for each in own)


def _keep_in_eval(module: nn.Module) -> None:
    module.training = False
    if _stay_in_eval not in module._forward_pre_hooks.values():
        # First, as a hook of spectral_norm moves its vectors while its module trains.
        module.register_forward_pre_hook(_stay_in_eval, prepend=True)


def _stay_in_eval(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    module.training = False


def _counts(model: nn.Module) -> Frozen:
    tensors = [named.tensor for named in parameters_by_name(model)]
    trainable = [tensor.numel() for tensor in tensors if tensor.requires_grad]
    frozen = [tensor.numel() for tensor in tensors if not tensor.requires_grad]
    kept = sum(_stay_in_eval in each._forward_pre_hooks.values() for each in model.modules())
    return Frozen(len(frozen), sum(frozen), len(trainable), sum(trainable), kept)
