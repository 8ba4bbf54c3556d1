"""Parameter groups for an optimizer: learning rates by layer, weight decay for weights only."""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from torch import nn

from pttool.core.model.names import NamedTensor, parameters_by_name
from pttool.core.model.patterns import first_match
from pttool.recipes.norms import NORMS
from pttool.recipes.unmatched import unmatched

NoDecay = Literal["norm+bias", "norm", "bias", "none"]

NAMED_AS_NORM = re.compile(r"norm(\d+d)?$", re.IGNORECASE)


def param_groups(
    model: nn.Module,
    lr_by_glob: Mapping[str, float] | None,
    weight_decay: float,
    no_decay: NoDecay = "norm+bias",
) -> list[dict[str, Any]]:
    """Return groups that hold every trainable parameter of a model once, for any torch optimizer.

    `lr_by_glob` gives learning rates to globs for the whole name of a parameter or of a module
    around it (`layer1`, `*.bn1.weight`; `convolution1` never is `convolution10`); the first that
    matches counts, and what none matches has the optimizer's own. Each group has the keys `params`,
    `weight_decay`, and `lr` where a glob gave it.

    `no_decay` names what gets no weight decay: the parameters of normalisation layers, those named
    `bias` or `..._bias`, both, or none. Position embeddings and class tokens are decayed.

    Raises ValueError for another `no_decay`, and for a glob that is left without a trainable
    parameter: no name matches, with the nearest, or all that match are frozen or an earlier glob's.
    """
    if no_decay not in get_args(NoDecay):
        raise ValueError(f"no_decay is {no_decay!r}: one of {', '.join(get_args(NoDecay))}")
    rates = dict(lr_by_glob or {})
    norms = _parameters_of_norms(model) if "norm" in no_decay else set()
    groups: dict[tuple[str | None, bool], dict[str, Any]] = {}
    used: set[str | None] = set()
    for named in parameters_by_name(model):
        glob = first_match((named.name, *named.aliases), rates)
        if named.tensor.requires_grad:
            used.add(glob)
            spared = id(named.tensor) in norms or ("bias" in no_decay and _is_bias(named))
            group = groups.setdefault((glob, spared), _group(rates, glob, spared, weight_decay))
            group["params"].append(named.tensor)
    for glob in rates:
        if glob not in used:
            raise _unused(glob, model)
    return list(groups.values())


def _unused(glob: str, model: nn.Module) -> ValueError:
    """Return why no parameter has the rate of a glob."""
    parameters = parameters_by_name(model)
    if any(first_match((named.name, *named.aliases), [glob]) for named in parameters):
        return ValueError(f"{glob!r}: all it matches are frozen, or matched by a glob before it")
    return unmatched(glob, model)


def _parameters_of_norms(model: nn.Module) -> set[int]:
    """Return the identities of what normalisation layers hold, those of other libraries too."""
    return {
        id(parameter)
        for module in model.modules()
        if isinstance(module, NORMS) or NAMED_AS_NORM.search(type(module).__name__)
        for parameter in module._parameters.values()
        if parameter is not None
    }


def _is_bias(named: NamedTensor) -> bool:
    """Whether it is named as a bias; multi-head attention has an `in_proj_bias`."""
    return named.name.rpartition(".")[2].endswith("bias")


def _group(
    rates: Mapping[str, float], glob: str | None, spared: bool, weight_decay: float
) -> dict[str, Any]:
    rate = {} if glob is None else {"lr": rates[glob]}
    return {"params": [], "weight_decay": 0.0 if spared else weight_decay, **rate}
