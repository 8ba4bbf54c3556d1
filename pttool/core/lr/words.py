"""The words of SPEC: which scheduler of torch each stands for, and what may be said of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# What a value is, and how it is written:
#   length   a number of epochs, or of steps as in 500s
#   lengths  any number of them, one after the other
#   rate     a factor per epoch
#   number   any other number           whole a number without decimals
#   flag     true or false              choice  one of the parameter's choices
Kind = Literal["length", "lengths", "rate", "number", "whole", "flag", "choice"]
REST = "rest"  # the default of a length: as long as the phase lasts


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a scheduler.

    `key` is torch's own name, `name` the short one; both may be written. Without a default it has
    to be given. `low` and `high` bound a number; `above_low` excludes the lower bound.
    """

    key: str
    name: str
    kind: Kind
    default: float | bool | str | None = None
    required: bool = False
    low: float | None = None
    high: float | None = None
    above_low: bool = False
    choices: tuple[str, ...] = ()

    @property
    def can_be_first(self) -> bool:
        """Whether it may be given by its place, without its name."""
        return self.kind in ("length", "lengths", "rate")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of SPEC.

    `torch` names the class. `lasts` is the key of the length that ends the phase in a chain, if any
    does. One that is `absolute` sets the lr whatever others have made of it, so it can't be
    multiplied with them; one that is `alone` can't be part of a chain either.
    """

    name: str
    torch: str
    parameters: tuple[Parameter, ...]
    example: str
    lasts: str | None = None
    absolute: bool = False
    alone: bool = False

    def find(self, name: str) -> Parameter | None:
        """Return the parameter of a name, short or torch's own."""
        found = (each for each in self.parameters if name in (each.name, each.key))
        return next(found, None)


GAMMA = Parameter("gamma", "g", "number", 0.1, low=0)
TOTAL = Parameter("total_iters", "n", "length", REST)
MIN_LR = Parameter("eta_min", "min", "number", 0.0, low=0)
CYCLE_MOMENTUM = Parameter("cycle_momentum", "cycle_momentum", "flag", True)


def _momenta(low: float, high: float) -> tuple[Parameter, ...]:
    return (
        CYCLE_MOMENTUM,
        Parameter("base_momentum", "base_momentum", "number", low, low=0, high=1),
        Parameter("max_momentum", "max_momentum", "number", high, low=0, high=1),
    )


_WORDS = (
    Word(
        "warmup",
        "LinearLR",
        (
            Parameter("total_iters", "n", "length", required=True),
            # By default 1/(n + 1): as large as the steps that follow, and never 0.
            Parameter("start_factor", "start", "number", low=0, high=1, above_low=True),
        ),
        "warmup(5)",
        lasts="total_iters",
    ),
    Word(
        "linear",
        "LinearLR",
        (
            TOTAL,
            Parameter("start_factor", "start", "number", 1.0, low=0, high=1, above_low=True),
            Parameter("end_factor", "end", "number", 0.0, low=0, high=1),
        ),
        "linear(end=0.1)",
        lasts="total_iters",
    ),
    Word(
        "constant",
        "ConstantLR",
        (TOTAL, Parameter("factor", "factor", "number", 1.0, low=0, high=1)),
        "constant(5, factor=0.1)",
        lasts="total_iters",
    ),
    Word(
        "step",
        "StepLR",
        (Parameter("step_size", "n", "length", required=True), GAMMA),
        "step(30)",
    ),
    Word(
        "multistep",
        "MultiStepLR",
        (Parameter("milestones", "at", "lengths", required=True), GAMMA),
        "multistep(30, 60, g=0.1)",
    ),
    Word(
        "exp",
        "ExponentialLR",
        (Parameter("gamma", "g", "rate", required=True, low=0, above_low=True),),
        "exp(0.95)",
    ),
    Word(
        "poly",
        "PolynomialLR",
        (TOTAL, Parameter("power", "power", "number", 1.0, low=0)),
        "poly(power=2)",
        lasts="total_iters",
    ),
    Word(
        "cosine",
        "CosineAnnealingLR",
        (Parameter("T_max", "n", "length", REST), MIN_LR),
        "cosine(min=1e-5)",
        lasts="T_max",
    ),
    Word(
        "restarts",
        "CosineAnnealingWarmRestarts",
        (
            Parameter("T_0", "n", "length", required=True),
            Parameter("T_mult", "mult", "whole", 1, low=1),
            MIN_LR,
        ),
        "restarts(10, mult=2)",
        absolute=True,
    ),
    Word(
        "cyclic",
        "CyclicLR",
        (
            Parameter("step_size_up", "n", "length", required=True),
            Parameter("base_lr", "base", "number", required=True, low=0),
            Parameter("step_size_down", "down", "length"),
            Parameter(
                "mode", "mode", "choice", "triangular",
                choices=("triangular", "triangular2", "exp_range"),
            ),
            Parameter("gamma", "g", "rate", 1.0, low=0, above_low=True),
            *_momenta(0.8, 0.9),
        ),
        "cyclic(4, base=0.001)",
        absolute=True,
    ),
    Word(
        "onecycle",
        "OneCycleLR",
        (
            Parameter("pct_start", "pct", "number", 0.3, low=0, high=1),
            Parameter("anneal_strategy", "anneal", "choice", "cos", choices=("cos", "linear")),
            Parameter("div_factor", "div", "number", 25.0, low=0, above_low=True),
            Parameter("final_div_factor", "final_div", "number", 1e4, low=0, above_low=True),
            Parameter("three_phase", "three_phase", "flag", False),
            *_momenta(0.85, 0.95),
        ),
        "onecycle(pct=0.25)",
        absolute=True,
        alone=True,
    ),
)  # fmt: skip
WORDS: Mapping[str, Word] = {word.name: word for word in _WORDS}

# What torch has and a line can't say, and why; what to do instead.
REFUSED: Mapping[str, tuple[str, str]] = {
    "plateau": (
        "lowers the lr when a metric stops improving, which only training knows",
        "read it while training: optimizer.param_groups[0]['lr']",
    ),
    "lambda": (
        "takes a Python function, which a line of SPEC can't hold",
        "write it as a chain of: " + ", ".join(WORDS),
    ),
    "multiplicative": (
        "takes a Python function, which a line of SPEC can't hold",
        "a constant factor is exp(0.95)",
    ),
}

# Other names that people know the words by: only for "did you mean".
ALIASES: Mapping[str, str] = {
    **{word.torch.lower(): word.name for word in _WORDS if word.name != "warmup"},
    "warm-up": "warmup", "warm_up": "warmup", "linearwarmup": "warmup",
    "exponential": "exp", "polynomial": "poly", "sgdr": "restarts", "warm_restarts": "restarts",
    "const": "constant", "hold": "constant", "cos": "cosine", "triangular": "cyclic",
    "1cycle": "onecycle", "one_cycle": "onecycle", "milestones": "multistep",
}  # fmt: skip
REFUSED_ALIASES: Mapping[str, str] = {
    "reducelronplateau": "plateau", "lambdalr": "lambda", "multiplicativelr": "multiplicative",
    "reduce_on_plateau": "plateau",
}  # fmt: skip
