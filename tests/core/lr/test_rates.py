"""The rates are those of the published formulas, and of torch's schedulers stepped by hand."""

from math import cos, pi

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import SGD, lr_scheduler

from pttool.core.lr.plan import plan
from pttool.core.lr.schedule import Rates, rates
from pttool.core.lr.spec import parse
from pttool.core.lr.table import table
from pttool.core.lr.words import REFUSED_ALIASES, WORDS
from pttool.errors import UsageError


def _rates(text: str, epochs: int, steps_per_epoch: int = 1, lr: float = 0.1) -> Rates:
    planned = plan(parse(text), epochs=epochs, steps_per_epoch=steps_per_epoch, lr=lr)
    return rates(planned, lr=lr)


def _cosine(step: int, length: int) -> float:
    """SGDR, Loshchilov and Hutter 2017, equation 5."""
    return (1 + cos(pi * step / length)) / 2


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("step(3, g=0.5)", [0.5 ** (step // 3) for step in range(10)]),
        ("multistep(3, 6)", [1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01]),
        ("exp(0.9)", [0.9**step for step in range(10)]),
        ("poly(power=2)", [(1 - step / 10) ** 2 for step in range(10)]),
        ("linear", [1 - step / 10 for step in range(10)]),
        ("constant", [1] * 10),
        ("constant(4, factor=0.5)", [0.5] * 4 + [1] * 6),
        ("cosine", [_cosine(step, 10) for step in range(10)]),
        ("restarts(2, mult=3)", [_cosine(s, 2) for s in (0, 1)] + [_cosine(s, 6) for s in range(6)]
            + [_cosine(s, 18) for s in (0, 1)]),
        ("cyclic(2, base=0.02)", [0.2, 0.6, 1, 0.6, 0.2, 0.6, 1, 0.6, 0.2, 0.6]),
        ("warmup(4) + cosine", [0.2, 0.4, 0.6, 0.8] + [_cosine(step, 6) for step in range(6)]),
        ("warmup(4, start=0.1) + linear", [0.1, 0.325, 0.55, 0.775, 1, 5/6, 4/6, 3/6, 2/6, 1/6]),
        ("step(2, g=0.5) * exp(0.9)", [0.5 ** (step // 2) * 0.9**step for step in range(10)]),
        ("exp(0.5, for=3) + cosine", [1, 0.5, 0.25] + [_cosine(step, 7) for step in range(7)]),
    ],
)  # fmt: skip
def test_the_published_formulas(text: str, factors: list[float]) -> None:
    assert _rates(text, 10).lr == pytest.approx([0.1 * factor for factor in factors])


def test_one_cycle_moves_the_momentum_the_other_way() -> None:
    """Smith and Topin 2018: the lr climbs to its peak and falls to next to nothing."""
    found = _rates("onecycle(pct=0.25)", 40)
    assert found.lr[0] == pytest.approx(0.1 / 25)
    assert max(found.lr) == found.lr[9] == pytest.approx(0.1)
    assert found.lr[-1] == pytest.approx(0.1 / 25 / 1e4)
    assert found.momentum is not None
    assert (found.momentum[0], found.momentum[9]) == pytest.approx((0.95, 0.85))
    assert _rates("onecycle(cycle_momentum=no)", 40).momentum is None


@given(st.integers(1, 30), st.integers(1, 20), st.integers(1, 7))
def test_a_warm_up_rises_in_equal_steps_and_never_from_zero(
    epochs: int, more: int, steps_per_epoch: int
) -> None:
    found = _rates(f"warmup({epochs})+cosine", epochs + more, steps_per_epoch).lr
    count = epochs * steps_per_epoch
    expected = [0.1 * (step + 1) / (count + 1) for step in range(count)]
    assert found[:count] == pytest.approx(expected)
    assert found[count] == pytest.approx(0.1)
    assert min(found) > 0


@given(
    st.sampled_from(["exp(0.8)", "step(3)", "multistep(2,5)", "poly", "linear", "cosine",
                     "step(3,for=5)+poly", "step(2)*exp(0.9)", "restarts(4)",
                     "cyclic(2,base=0.01,mode=exp_range,g=0.9)"]),
    st.integers(2, 9),
)  # fmt: skip
def test_steps_make_the_same_curve_finer(text: str, steps_per_epoch: int) -> None:
    coarse, fine = _rates(text, 8), _rates(text, 8, steps_per_epoch)
    assert fine.lr[::steps_per_epoch] == pytest.approx(coarse.lr)


@pytest.mark.parametrize(
    "text",
    [
        "warmup(4)+cosine", "step(3)*exp(0.9)", "onecycle", "cyclic(2,base=0.01,down=1)",
        "multistep(3,5)", "warmup(2)+restarts(3,mult=2,min=0.001)", "poly(5,power=2)",
    ],
)  # fmt: skip
def test_the_code_shown_makes_the_same_rates(text: str) -> None:
    report = table(parse(text), epochs=12, lr=0.1)
    optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    names = {**vars(lr_scheduler), "optimizer": optimizer}
    scheduler = eval(report.summary["scheduler"], names)
    for item in report.items:
        assert optimizer.param_groups[0]["lr"] == item["lr"]
        optimizer.step()
        if item["step"] < 11:
            scheduler.step()


def test_every_scheduler_of_torch_is_a_word_an_operator_or_refused_with_a_reason() -> None:
    said = {word.torch.lower() for word in WORDS.values()} | set(REFUSED_ALIASES)
    said |= {"sequentiallr", "chainedscheduler", "lrscheduler"}
    assert {name.lower() for name in lr_scheduler.__all__} <= said


def test_a_cosine_that_rises_again_is_noted() -> None:
    report = table(parse("cosine(5)"), epochs=10, lr=0.1)
    assert report.items[5]["lr"] == pytest.approx(0)
    assert report.items[9]["lr"] > 0.05
    assert "rises again" in report.notes[0]


@pytest.mark.parametrize("text", ["onecycle(pct=0.1)", "multistep(2,4,g=1e300)"])
def test_arithmetic_that_fails_in_torch_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="LR fails at step"):
        _rates(text, 10)
