"""From phases in epochs to calls of torch's schedulers in steps, without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pttool.core.lr.spec import Spec, Term
from pttool.core.lr.values import Length, Read
from pttool.core.lr.words import REST, Parameter
from pttool.errors import UsageError

MOST_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """A scheduler of torch: the class, its arguments, and the schedulers that it is made of."""

    name: str
    arguments: Mapping[str, object]
    parts: tuple["Call", ...] = ()

    def __str__(self) -> str:
        """Return the Python that makes it."""
        parts = f"[{', '.join(map(str, self.parts))}]" if self.parts else ""
        # ChainedScheduler takes its schedulers first, all others the optimizer.
        leading = [parts] if self.name == "ChainedScheduler" else ["optimizer", *parts.splitlines()]
        given = [f"{name}={value!r}" for name, value in self.arguments.items()]
        return f"{self.name}({', '.join([*leading, *given])})"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is stepped, how often, and what is to say of it."""

    call: Call
    steps: int
    steps_per_epoch: int
    notes: tuple[str, ...] = ()


def plan(spec: Spec, *, epochs: int, steps_per_epoch: int, lr: float) -> Plan:
    """Return the calls that make the phases of `spec` fill so many epochs.

    Lengths in epochs become steps; a factor per epoch becomes one per step. `lr` is the highest of
    those schedulers that are given bounds, as OneCycleLR. Raises UsageError for lengths that are no
    whole steps, leave nothing for a phase, or are missing, and for over MOST_STEPS steps.
    """
    total = epochs * steps_per_epoch
    if total > MOST_STEPS:
        raise UsageError(
            f"{epochs:,} epochs of {steps_per_epoch:,} steps are over {MOST_STEPS:,} steps",
            "give a smaller --steps-per-epoch: the curve is the same, only coarser",
        )
    planner = _Planner(spec, total, steps_per_epoch, lr)
    durations = planner.durations()
    calls = [
        planner.phase(phase, length) for phase, length in zip(spec.phases, durations, strict=True)
    ]
    call = calls[0]
    if len(calls) > 1:
        milestones = [sum(durations[:count]) for count in range(1, len(durations))]
        call = Call("SequentialLR", {"milestones": milestones}, tuple(calls))
    return Plan(call, total, steps_per_epoch, tuple(planner.notes))


class _Planner:
    """Turns lengths and terms of one spec into steps and calls."""

    def __init__(self, spec: Spec, total: int, steps_per_epoch: int, lr: float) -> None:
        self.spec = spec
        self.total = total
        self.steps_per_epoch = steps_per_epoch
        self.lr = lr
        self.notes: list[str] = []

    def durations(self) -> list[int]:
        """Return how many steps each phase lasts; the last takes what is left."""
        durations = [self.duration(phase) for phase in self.spec.phases[:-1]]
        last = self.spec.phases[-1]
        left = self.total - sum(durations)
        if left < 1:
            what = f"nothing is left for {last[0].word.name!r}: the phases before it last "
            what += f"{self.in_epochs(sum(durations))} of {self.in_epochs(self.total)} epochs"
            raise self.spec.fault(what, last[0].at, "give more --epochs, or shorter phases")
        for term in last:
            if term.lasting is not None and self.steps(term.lasting, term) != left:
                what = f"for={term.lasting}, but {self.in_epochs(left)} epochs are left"
                raise self.spec.fault(what, term.at, "the last phase lasts to the end anyway")
        return [*durations, left]

    def duration(self, phase: Sequence[Term]) -> int:
        (term,) = phase  # a product is never part of a chain
        natural = term.given.get(term.word.lasts or "")
        lasting = term.lasting or (natural if isinstance(natural, Length) else None)
        if lasting is None:
            name = term.word.name
            what = f"how long does {name!r} last?"
            raise self.spec.fault(what, term.at, f"say it with for=, as in {name}(..., for=30)+...")
        return self.steps(lasting, term)

    def steps(self, length: Length, term: Term) -> int:
        exact = length.count if length.in_steps else length.count * self.steps_per_epoch
        steps = round(exact)
        if steps < 1 or abs(exact - steps) > 1e-6 * exact:
            what = f"{term.word.name}: {length} "
            what += "steps are no whole number" if length.in_steps else "epochs are no whole steps"
            hint = f"there are {self.steps_per_epoch:,} steps per epoch: see --steps-per-epoch"
            raise self.spec.fault(what, term.at, hint)
        return steps

    def in_epochs(self, steps: int) -> str:
        return f"{steps / self.steps_per_epoch:g}"

    def phase(self, terms: Sequence[Term], length: int) -> Call:
        calls = tuple(self.term(term, length) for term in terms)
        return calls[0] if len(calls) == 1 else Call("ChainedScheduler", {}, calls)

    def term(self, term: Term, length: int) -> Call:
        arguments: dict[str, object] = {}
        for parameter in term.word.parameters:
            value = term.given.get(parameter.key, parameter.default)
            if value is not None:
                arguments[parameter.key] = self.argument(value, parameter, term, length)
        match term.word.name:
            case "warmup":
                # n steps below the full lr, equally far apart, and none of them 0.
                arguments.setdefault("start_factor", 1 / (_whole(arguments["total_iters"]) + 1))
            case "onecycle":
                arguments = {"max_lr": self.lr, "total_steps": length, **arguments}
            case "cyclic":
                arguments["max_lr"] = self.lr
            case "cosine" if _whole(arguments["T_max"]) < length:
                end = self.in_epochs(_whole(arguments["T_max"]))
                self.notes.append(f"cosine is lowest after {end} epochs, and then rises again")
        return Call(term.word.torch, arguments)

    def argument(self, value: Read, parameter: Parameter, term: Term, length: int) -> object:
        match value:
            case Length():
                return self.steps(value, term)
            case tuple():
                return [self.steps(each, term) for each in value]
            case float() | int() if parameter.kind == "rate":
                return float(value) ** (1 / self.steps_per_epoch)
        return length if value == REST and parameter.kind == "length" else value


def _whole(steps: object) -> int:
    return steps if isinstance(steps, int) else 0
