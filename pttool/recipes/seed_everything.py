"""Seed every random generator that training draws from, those of data loader workers included."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import torch

from pttool.core.env.determinism import unmet_variables


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a DataLoader needs for its order, and its workers' draws, to be the same each time."""

    generator: torch.Generator
    worker_init_fn: Callable[[int], None]


def seed_everything(seed: int, deterministic: bool = False) -> Seeded:
    """Seed python, numpy and torch on all devices; give what it returns to each DataLoader.

    `deterministic` also sets what `pttool env --check deterministic` checks: torch's deterministic
    algorithms, cuDNN without benchmarks, and the environment variables of cuBLAS, which counts
    before the first CUDA call, and of string hashes, which counts in new processes only. False
    leaves those as they are.

    `seed` is any that torch takes: -2**63 to 2**64 - 1. Raises RuntimeError for others.

    Source: https://docs.pytorch.org/docs/stable/notes/randomness.html
    """
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    _seed_others(seed)
    if deterministic:
        for variable in unmet_variables(os.environ, cuda=True):
            os.environ[variable.name] = variable.value
        _use_deterministic_algorithms()
    return Seeded(generator, partial(_seed_worker, deterministic=deterministic))


def _seed_others(seed: int) -> None:
    random.seed(seed % 2**64)  # which alone would make 5 of -5
    if find_spec("numpy") is not None:
        import numpy as np

        np.random.seed(seed % 2**32)


def _use_deterministic_algorithms() -> None:
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def _seed_worker(worker: int, *, deterministic: bool) -> None:
    """Seed a data loader's worker from the seed that torch gave it: base seed + number."""
    _seed_others(torch.initial_seed())
    if deterministic:  # a worker that is spawned, not forked, starts without
        _use_deterministic_algorithms()
