"""A learning rate that warms up linearly and then falls along a cosine."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


class WarmupCosine:
    """The factor of the learning rate at each step, by its closed form.

    A plain object, so that a scheduler's state dict holds its numbers and resuming restores them.
    """

    def __init__(self, warmup_steps: int, total_steps: int, min_factor: float) -> None:
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.min_factor = min_factor

    def __call__(self, step: int) -> float:
        """Return the factor at a step, the first being 0."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        passed = min(step, self.total_steps) - self.warmup_steps
        share = passed / (self.total_steps - self.warmup_steps)
        return self.min_factor + (1 - self.min_factor) * (1 + math.cos(math.pi * share)) / 2


def warmup_cosine(
    optimizer: Optimizer, warmup_steps: int, total_steps: int, min_factor: float = 0.0
) -> LambdaLR:
    """Return a scheduler to be stepped after each optimizer step, or after each epoch.

    With w = warmup_steps, n = total_steps and m = min_factor, each group's learning rate times

        (t + 1) / (w + 1)                                        for steps t = 0 ... w - 1
        m + (1 - m) * (1 + cos(pi * (t - w) / (n - w))) / 2      for t = w ... n, then m

    so the first step already trains, and step w has the whole rate. Torch's own SequentialLR of
    LinearLR(start_factor=1 / (w + 1), total_iters=w) and CosineAnnealingLR(T_max=n - w) is the
    same up to rounding.

    Raises ValueError unless 0 <= warmup_steps < total_steps and 0 <= min_factor <= 1.

    Sources: Goyal et al., Accurate, Large Minibatch SGD, 2017 (warm-up); Loshchilov and Hutter,
    SGDR, 2017 (cosine).
    """
    if not 0 <= warmup_steps < total_steps:
        raise ValueError(f"{warmup_steps} steps of warm-up don't fit into {total_steps} in all")
    if not 0 <= min_factor <= 1:
        raise ValueError(f"min_factor is {min_factor}: it must be from 0 to 1")
    return LambdaLR(optimizer, WarmupCosine(warmup_steps, total_steps, min_factor))
