"""What every module of a model returns, by plain hooks that clone: the oracle of the tests."""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn

from pttool.core.features.hooks import Capture
from pttool.core.features.naming import Chosen, choose
from pttool.core.features.probe import Probe, probe
from pttool.core.features.types import Wanted
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec


def cloned(model: nn.Module, pictures: Tensor) -> dict[str, list[Any]]:
    """Return {module name: a deep copy of what each of its calls returned}."""
    seen: defaultdict[str, list[Any]] = defaultdict(list)
    handles = [
        module.register_forward_hook(
            lambda _module, _args, output, name=name: seen[name].append(_copy(output))
        )
        for name, module in model.named_modules()
    ]
    with torch.inference_mode():
        model(pictures)
    for handle in handles:
        handle.remove()
    return seen


def probed(model: nn.Module, pictures: Tensor) -> Probe:
    """Return what a probe of a ready-made model finds, for pictures of this size."""
    return probe(Resolved("net", "here", model, "meta"), [InputSpec(tuple(pictures.shape[1:]))])


def chosen(model: nn.Module, pictures: Tensor, *texts: str) -> Chosen:
    """Return what -l chooses of a model."""
    return choose(probed(model, pictures).layers, texts, model="net")


def captured(model: nn.Module, pictures: Tensor, *texts: str, **options: Any) -> dict[str, Tensor]:
    """Return what is extracted for -l `texts`."""
    capture = Capture(model, chosen(model, pictures, *texts).wanted, **options)
    try:
        return capture(pictures)
    finally:
        capture.close()


def found_in(reference: dict[str, list[Any]], wanted: Wanted) -> Any:
    """Return the tensor of a reference that something wanted should be."""
    value = reference[wanted.module][wanted.call]
    for key in wanted.keys:
        value = value[key] if isinstance(value, dict) else value[int(key)]
    return value


def _copy(output: Any) -> Any:
    if isinstance(output, Tensor):
        return output.clone()
    if isinstance(output, dict):
        return {key: _copy(value) for key, value in output.items()}
    if isinstance(output, tuple | list):
        return [_copy(value) for value in output]
    return output
