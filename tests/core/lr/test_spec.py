"""SPEC says what is wrong, where, and what was meant."""

import re

import pytest

from pttool.core.lr.plan import plan
from pttool.core.lr.spec import parse
from pttool.errors import UsageError


@pytest.mark.parametrize(
    ("text", "character", "said", "hint"),
    [
        ("cosin", 1, "no scheduler 'cosin'", "Did you mean 'cosine'?"),
        ("warmup(5)+cosin", 11, "no scheduler 'cosin'", "Did you mean 'cosine'?"),
        ("CosineAnnealingLR(10)", 1, "no scheduler", "Did you mean 'cosine'?"),
        ("qqqq", 1, "no scheduler 'qqqq'", "one of warmup, linear"),
        ("warmup(5, sart=0.1)", 11, "has no 'sart'", "Did you mean 'start'?"),
        ("warmup(5", 9, "a ) is missing", "warmup(5)"),
        ("cosine)", 7, "')' can't follow", "+"),
        ("cosine(3) linear", 11, "'linear' can't follow", "+"),
        ("warmup(5)++cosine", 11, "name is missing", "one of"),
        ("", 1, "name is missing", "one of"),
        ("step", 1, "needs n", "step(30)"),
        ("step(n=3, 3)", 11, "'3' needs a name", "g="),
        ("step(n=3, n=4)", 13, "given twice", "step(30)"),
        ("warmup(0)", 8, "not above 0", "warmup(5)"),
        ("exp(nan)", 5, "not finite", "exp(0.95)"),
        ("poly(power=two)", 12, "'two' is no number", "poly"),
        ("linear(start=0)", 14, "not above 0", "linear"),
        ("onecycle(3)", 10, "'3' needs a name", "pct="),
        ("onecycle(anneal=cosine)", 17, "none of cos, linear", "onecycle"),
        ("restarts(3, mult=1.5)", 18, "no whole number", "restarts"),
        ("plateau", 1, "only training knows", "while training"),
        ("ReduceLROnPlateau(patience=3)", 1, "only training knows", "while training"),
        ("warmup(3)+lambda", 11, "Python function", "cosine"),
        ("warmup(3)+onecycle", 11, "whole schedule", "alone"),
        ("cyclic(3, base=0.1)+cosine", 1, "can't come first", "after a +"),
        ("step(3)*restarts(4)", 9, "sets the lr itself", "multiply"),
        ("warmup(3)+step(3)*exp(0.9)", 11, "SequentialLR", "alone"),
    ],
)
def test_the_wrong_word_is_named(text: str, character: int, said: str, hint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        parse(text)
    assert caught.value.message.endswith(f"(character {character})")
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("warmup(10)+cosine", "nothing is left for 'cosine': the phases before it last 10 of 10"),
        ("step(3)+cosine", "how long does 'step' last?"),
        ("warmup(0.3)+cosine", "no whole steps"),
        ("cosine(for=9)", "for=9, but 10 epochs are left"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        plan(parse(text), epochs=10, steps_per_epoch=1, lr=0.1)


def test_a_length_in_steps_is_independent_of_epochs() -> None:
    planned = plan(parse("warmup(30s) + cosine"), epochs=3, steps_per_epoch=20, lr=0.1)
    assert planned.call.arguments == {"milestones": [30]}
    warmup, cosine = planned.call.parts
    assert warmup.arguments["total_iters"] == 30
    assert cosine.arguments["T_max"] == 30


def test_more_steps_than_can_be_listed_are_refused() -> None:
    with pytest.raises(UsageError, match="over 1,000,000 steps"):
        plan(parse("cosine"), epochs=1000, steps_per_epoch=1001, lr=0.1)
