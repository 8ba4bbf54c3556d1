"""Save all that training needs to go on, and go on as if it had never stopped."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

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

    torch.load reads it with weights_only=True as long as the states hold nothing but tensors, plain
    numbers, texts and containers, which those of torch do; a learning rate or metric from numpy
    should be made a float first. With several processes, one writes it.

    Raises OSError where the file can't be written; what was there before stays.
    """
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    checkpoint = {
        **{name: part.state_dict() for name, part in parts.items() if part is not None},
        "random": random_states(generators),
        "epoch": epoch,
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

    Raises ValueError for a part or a number of generators that the checkpoint doesn't hold, before
    anything is changed; what torch.load and load_state_dict raise otherwise.
    """
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    asked = {name: part for name, part in parts.items() if part is not None}
    absent = [name for name in ("random", *asked) if name not in checkpoint]
    if absent:
        raise ValueError(f"{path}: holds no {' and no '.join(absent)}")
    saved = len(checkpoint["random"]["generators"])
    if saved != len(generators):
        raise ValueError(f"{path}: holds the states of {saved} generators, not {len(generators)}")
    for name, part in asked.items():
        part.load_state_dict(checkpoint[name])
    set_random_states(checkpoint["random"], generators)
    return Progress(checkpoint["epoch"], checkpoint["best_metric"])


def _save(checkpoint: dict[str, Any], path: Path) -> None:
    with complete_or_absent(path) as stream:
        torch.save(checkpoint, stream)
