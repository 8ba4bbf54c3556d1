"""Save all that training needs to go on, and go on as if it had never stopped."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from operator import is_not
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch.serialization import get_unsafe_globals_in_checkpoint

from pttool.core.files import complete_or_absent
from pttool.recipes.random_states import random_states, set_random_states


class Stateful(Protocol):
    """An optimizer, scheduler or gradient scaler."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far training had come: the epochs done, and the best metric so far if there is one."""

    epoch: int
    best_metric: float | None


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: Stateful | None = None,
    scheduler: Stateful | None = None,
    scaler: Stateful | None = None,
    *,
    epoch: int,
    best_metric: float | None = None,
    is_best: bool = False,
    generators: Sequence[torch.Generator] = (),
) -> None:
    """Write a checkpoint from which `load_checkpoint` goes on bit for bit.

    It holds the states of what is given, of the random generators of python, numpy, torch and CUDA
    and of `generators` (those of data loaders), `epoch` (how many are done) and `best_metric`. It
    appears under its name complete or not at all. With `is_best` a copy is kept beside it: for
    `last.pt` as `last-best.pt`.

    torch.load reads it with weights_only=True: numbers of numpy, as a learning rate may be, become
    Python's. With several processes, one writes it.

    Raises ValueError for a state that holds what weights_only refuses, OSError where the file can't
    be written; what was there before stays.
    """
    parts = _given(model, optimizer, scheduler, scaler)
    checkpoint = {
        **{name: _plain(part.state_dict()) for name, part in parts.items()},
        "random": random_states(generators),
        "epoch": int(epoch),
        "best_metric": None if best_metric is None else float(best_metric),
    }
    target = Path(path)
    if is_best:  # first: after a stop in between, the epoch that was best is done again
        _save(checkpoint, target.with_stem(f"{target.stem}-best"))
    _save(checkpoint, target)


def load_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: Stateful | None = None,
    scheduler: Stateful | None = None,
    scaler: Stateful | None = None,
    *,
    generators: Sequence[torch.Generator] = (),
) -> Progress:
    """Put back what `save_checkpoint` wrote, random generators too, and return how far it had come.

    The file is read with weights_only=True onto the CPU, from where states go to the devices that
    the model is on. What the checkpoint holds and isn't asked for is left.

    Raises ValueError for a part or a number of generators that the checkpoint doesn't hold, and for
    other parameter groups of the optimizer, before anything is changed; otherwise what torch.load
    and load_state_dict raise: a model of other shapes has then taken what fits.
    """
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    asked = _given(model, optimizer, scheduler, scaler)
    absent = [name for name in ("random", *asked) if name not in checkpoint]
    if absent:
        raise ValueError(f"{path}: holds no {' and no '.join(absent)}")
    saved = len(checkpoint["random"]["generators"])
    if saved != len(generators):
        raise ValueError(f"{path}: holds the states of {saved} generators, not {len(generators)}")
    if isinstance(optimizer, Optimizer):
        _check_groups(path, optimizer, checkpoint["optimizer"])
    for name, part in asked.items():
        part.load_state_dict(checkpoint[name])
    set_random_states(checkpoint["random"], generators)
    return Progress(checkpoint["epoch"], checkpoint["best_metric"])


def _given(
    model: nn.Module,
    optimizer: Stateful | None,
    scheduler: Stateful | None,
    scaler: Stateful | None,
) -> dict[str, nn.Module | Stateful]:
    """Return what there is to save or load, by its key in a checkpoint."""
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    return {name: part for name, part in parts.items() if part is not None}


def _plain(value: Any) -> Any:
    """Return a state with numpy's numbers as Python's; what has none is the same object."""
    if type(value).__module__ == "numpy" and value.shape == ():
        return value.item()
    if isinstance(value, dict):
        changed = {key: new for key, old in value.items() if (new := _plain(old)) is not old}
        converted = copy(value) if changed else value
        for key, new in changed.items():
            converted[key] = new
        return converted
    if type(value) in (list, tuple):
        items = [_plain(old) for old in value]
        return type(value)(items) if any(map(is_not, items, value)) else value
    return value


def _save(checkpoint: dict[str, Any], path: Path) -> None:
    with complete_or_absent(path) as stream:
        torch.save(checkpoint, stream)
        stream.flush()
        _check_loadable(path, stream)


def _check_loadable(path: Path, stream: BinaryIO) -> None:
    """Raise ValueError if what was written holds objects that weights_only refuses.

    Of the zip file that it is, the tensors aren't read.
    """
    if not os.path.isfile(stream.fileno()):
        return
    with os.fdopen(os.dup(stream.fileno()), "rb") as written:
        written.seek(0)
        refused = get_unsafe_globals_in_checkpoint(written)
    if refused:
        raise ValueError(f"{path}: torch.load would refuse what it holds: {', '.join(refused)}")


def _check_groups(path: str | Path, optimizer: Optimizer, state: dict[str, Any]) -> None:
    saved = [len(group["params"]) for group in state["param_groups"]]
    own = [len(group["params"]) for group in optimizer.param_groups]
    if saved != own:
        raise ValueError(f"{path}: its optimizer has groups of {saved} tensors, not of {own}")
