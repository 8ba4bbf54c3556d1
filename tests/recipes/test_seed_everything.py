"""Two runs draw the same, from every generator and in every worker."""

import os
import pickle
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pttool.core.env.determinism import VARIABLES, unmet_switches, unmet_variables
from pttool.recipes import Seeded, seed_everything


class Drawing(Dataset[list[float]]):
    """Augments as datasets do: with whatever generator comes to hand."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> list[float]:
        return [float(index), random.random(), np.random.rand(), float(torch.rand(()))]


def _draws(seeded: Seeded | None) -> list[object]:
    """Return what a run draws, two epochs of a shuffling loader with workers included."""
    generator = seeded.generator if seeded else None
    init = seeded.worker_init_fn if seeded else None
    loader = DataLoader(
        Drawing(), 2, shuffle=True, num_workers=2, generator=generator, worker_init_fn=init
    )
    epochs = [[torch.stack(batch).tolist() for batch in loader] for _ in range(2)]
    assert epochs[0] != epochs[1], "an epoch doesn't repeat the one before"
    return [random.random(), np.random.rand(), float(torch.rand(())), epochs]


def _switches() -> dict[str, bool]:
    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
    }


def _old_recipe(seed: int) -> None:
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def test_two_runs_draw_the_same_and_the_old_recipe_does_not() -> None:
    first, again, other = (_draws(seed_everything(seed)) for seed in (0, 0, 1))
    assert first == again != other
    old = []
    for _ in range(2):
        _old_recipe(0)
        old.append(_draws(None))
    assert old[0] != old[1]


def test_the_order_of_a_loader_does_not_depend_on_draws_before_it() -> None:
    def order(draws: int, seed: int = 0) -> list[int]:
        generator = seed_everything(seed).generator
        torch.rand(draws)
        dataset = TensorDataset(torch.arange(16))
        loader = DataLoader(dataset, shuffle=True, generator=generator)
        return [int(batch) for (batch,) in loader]

    assert order(0) == order(1) != order(0, seed=1)


@pytest.mark.parametrize("seed", [0, -1, 2**32, 2**64 - 1])
def test_any_seed_of_torch_is_taken(seed: int) -> None:
    seed_everything(seed)
    first = (random.random(), np.random.rand(), float(torch.rand(())))
    seed_everything(seed)
    assert first == (random.random(), np.random.rand(), float(torch.rand(())))


def test_all_cuda_devices_are_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    seed_everything(7)
    assert seeds == [7]


def test_deterministic_sets_all_that_env_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable.name, "other")  # and put back afterwards
        monkeypatch.delenv(variable.name)
    torch.backends.cudnn.benchmark = True
    init = seed_everything(0, deterministic=True).worker_init_fn
    assert unmet_variables(os.environ, cuda=True) == []
    assert unmet_switches(_switches()) == []
    assert _after_all_is_undone(init) == []


def _after_all_is_undone(init: Callable[[int], None]) -> list[object]:
    """Start a worker as one that is spawned: with a pickled function and torch's defaults."""
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    pickle.loads(pickle.dumps(init))(0)
    return list(unmet_switches(_switches()))


def test_a_variable_that_is_right_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    seed_everything(0, deterministic=True)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    assert os.environ["PYTHONHASHSEED"] == "5"


def test_without_deterministic_nothing_but_seeds_changes() -> None:
    before = _switches(), dict(os.environ)
    seed_everything(0)
    assert (_switches(), dict(os.environ)) == before


def test_a_seed_below_0_is_not_its_opposite() -> None:
    drawn = []
    for seed in (5, -5):
        seed_everything(seed)
        drawn.append(random.random())
    assert drawn[0] != drawn[1]
