"""The rate is its closed form at every step, and never 0 at the first."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

from pttool.recipes import warmup_cosine


def _optimizer(*rates: float) -> SGD:
    return SGD([{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates])


def _stepped(optimizer: SGD, scheduler: LRScheduler, steps: int) -> list[list[float]]:
    rates = []
    for _ in range(steps):
        rates.append([float(group["lr"]) for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return rates


PLANS = st.integers(0, 20).flatmap(
    lambda warmup: st.tuples(st.just(warmup), st.integers(warmup + 1, 60))
)


@given(plan=PLANS, least=st.sampled_from([0.0, 0.01, 1.0]))
def test_every_step_is_the_closed_form(plan: tuple[int, int], least: float) -> None:
    warmup, total = plan
    optimizer = _optimizer(0.1, 3.0)
    rates = _stepped(optimizer, warmup_cosine(optimizer, warmup, total, least), total + 3)
    for step, (first, second) in enumerate(rates):
        if step < warmup:
            factor = (step + 1) / (warmup + 1)
        elif step <= total:
            turn = math.pi * (step - warmup) / (total - warmup)
            factor = least + (1 - least) * (1 + math.cos(turn)) / 2
        else:
            factor = least
        assert first == pytest.approx(0.1 * factor, rel=1e-12, abs=1e-18)
        assert second == pytest.approx(3.0 * factor, rel=1e-12, abs=1e-18)
    assert rates[0][0] > 0
    assert rates[warmup][0] == pytest.approx(0.1)


def test_the_old_recipe_begins_with_0() -> None:
    optimizer = _optimizer(0.1)
    old = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: t / 5 if t < 5 else 1.0)
    assert _stepped(optimizer, old, 2)[0] == [0.0]


@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step:UserWarning")
def test_equals_the_schedulers_of_torch() -> None:
    ours, theirs = _optimizer(0.1), _optimizer(0.1)
    parts = [LinearLR(theirs, 1 / 6, total_iters=5), CosineAnnealingLR(theirs, 20, eta_min=0.001)]
    torchs = _stepped(theirs, SequentialLR(theirs, parts, [5]), 25)
    for mine, other in zip(
        _stepped(ours, warmup_cosine(ours, 5, 25, 0.01), 25), torchs, strict=True
    ):
        assert mine == pytest.approx(other, rel=1e-9)


def test_a_resumed_scheduler_goes_on_with_its_own_plan() -> None:
    straight = _optimizer(0.1)
    expected = _stepped(straight, warmup_cosine(straight, 3, 20, 0.1), 20)[8:]
    first = _optimizer(0.1)
    scheduler = warmup_cosine(first, 3, 20, 0.1)
    _stepped(first, scheduler, 8)
    second = _optimizer(0.1)
    resumed = warmup_cosine(second, 0, 5)
    resumed.load_state_dict(scheduler.state_dict())
    second.load_state_dict(first.state_dict())
    assert _stepped(second, resumed, 12) == expected


@pytest.mark.parametrize(("warmup", "total", "least"), [(5, 5, 0.0), (-1, 5, 0.0), (0, 5, 1.5)])
def test_what_makes_no_sense_is_refused(warmup: int, total: int, least: float) -> None:
    with pytest.raises(ValueError, match=r"don't fit|min_factor"):
        warmup_cosine(_optimizer(0.1), warmup, total, least)
