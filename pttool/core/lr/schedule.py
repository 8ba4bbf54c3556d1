"""Step torch's own scheduler, with an optimizer, and take down what it sets."""

from dataclasses import dataclass
from math import isfinite

import torch
from torch.optim import SGD, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from pttool.core.lr.plan import Call, Plan
from pttool.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rates:
    """What the optimizer works with at each step; `momentum` is None where nothing moves it."""

    lr: list[float]
    momentum: list[float] | None


def rates(plan: Plan, *, lr: float) -> Rates:
    """Return the learning rate that each step is made with, the first one included.

    The optimizer is torch's SGD, stepped before the scheduler, as training does. Raises UsageError
    where torch's arithmetic fails, or ends in infinity.
    """
    optimizer = SGD([torch.nn.Parameter(torch.zeros(()))], lr=lr, momentum=0.9)
    (group,) = optimizer.param_groups
    found: list[float] = []
    momenta: list[float] = []
    try:
        scheduler = _build(plan.call, optimizer)
        for step in range(plan.steps):
            found.append(_finite(float(group["lr"])))
            momenta.append(float(group["momentum"]))
            optimizer.step()
            if step + 1 < plan.steps:  # OneCycleLR refuses to be stepped past its end
                scheduler.step()
    except ArithmeticError as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"SPEC: {plan.call.name} fails at step {len(found)} of {plan.steps}: {reason}",
            "change its numbers, or give it more steps",
        ) from error
    moved = len(set(momenta)) > 1
    return Rates(found, momenta if moved else None)


def _finite(lr: float) -> float:
    if not isfinite(lr):
        raise OverflowError("the lr is no finite number")
    return lr


def _build(call: Call, optimizer: SGD) -> LRScheduler:
    make = getattr(lr_scheduler, call.name)
    if not call.parts:
        scheduler: LRScheduler = make(optimizer, **call.arguments)
        return scheduler
    parts = [_build(part, optimizer) for part in call.parts]
    first = (parts,) if call.name == "ChainedScheduler" else (optimizer, parts)
    joined: LRScheduler = make(*first, **call.arguments)
    return joined
