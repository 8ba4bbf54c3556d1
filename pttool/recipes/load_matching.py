"""Load what fits of a state dict into a model, and tell what didn't."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from pttool.core.ckpt.editing.renaming import Renaming


@dataclass(frozen=True, slots=True)
class Matching:
    """What became of each name, as the model has it.

    `missing` are in the model only, `unexpected` in the state dict only (without the wrappers), and
    `mismatched` in both with different shapes: the model keeps its own.
    """

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: tuple[str, ...]


def load_matching(model: nn.Module, state_dict: Mapping[str, Any]) -> Matching:
    """Load into a model the tensors of a state dict that have its names and shapes, in place.

    The names that DataParallel, torch.compile and FSDP leave are taken off on both sides, by the
    rule of `pttool ckpt strip-dataparallel`, so that a wrapped model loads a plain state dict and
    the other way round. Another shape, or a value that is no tensor, never raises. State dicts in
    the old formats that load_state_dict converts are converted.

    Raises ValueError for two names that become one without the wrappers, for a name that is no
    string, and for a model on the meta device, which can't hold values.
    """
    for name in state_dict:
        if not isinstance(name, str):
            raise ValueError(f"{name!r} is no name of a tensor: is it the state dict of a module?")
    wanted = model.state_dict()
    for name, value in wanted.items():
        if isinstance(value, Tensor) and value.is_meta:
            raise ValueError(f"{name} is on the meta device: model.to_empty(device=...) first")
    given = _by_name_of_model(state_dict, wanted)
    mismatched: list[str] = []
    leave = partial(_leave_mismatched, mismatched)
    hooks = [
        module.register_load_state_dict_pre_hook(leave)  # type: ignore[no-untyped-call]
        for module in model.modules()
    ]
    try:
        result = model.load_state_dict(given, strict=False)
    finally:
        for hook in hooks:
            hook.remove()
    left = {*mismatched, *result.missing_keys}
    return Matching(
        loaded=tuple(name for name in wanted if name not in left),
        missing=tuple(name for name in result.missing_keys if name not in mismatched),
        unexpected=tuple(result.unexpected_keys),
        mismatched=tuple(mismatched),
    )


def _by_name_of_model(state_dict: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    wrapped = {plain: name for name, plain in _plain_names(wanted)}
    given: dict[str, Any] = {}
    for name, plain in _plain_names(state_dict):
        candidates = (name, plain, wrapped.get(plain, plain))
        own = next((candidate for candidate in candidates if candidate in wanted), plain)
        if own in given:
            raise ValueError(f"{name}: another name of the state dict becomes {own} too")
        given[own] = state_dict[name]
    return given


def _plain_names(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return each name, and what is left of it without the wrappers."""
    known = list(names)
    return zip(known, Renaming().all_renamed(known), strict=True)


def _leave_mismatched(
    mismatched: list[str], module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: Any
) -> None:
    """Take out what a module can't load: called by torch, after the names of old formats are new.

    Also what torch itself filled in with the module's own tensor: it isn't in the state dict.
    """
    own = {**module._parameters, **module._buffers}
    for name, value in own.items():
        key = prefix + name
        if value is None or key not in state_dict or name in module._non_persistent_buffers_set:
            continue
        if not _fits(state_dict[key], value):
            mismatched.append(key)
            del state_dict[key]
        elif state_dict[key] is value:
            del state_dict[key]


def _fits(given: object, own: Tensor) -> bool:
    """Whether torch loads it: for a scalar also the one element that torch 0.3 wrote."""
    if not isinstance(given, Tensor):
        return False
    return given.shape == own.shape or (own.dim() == 0 and given.shape == (1,))
