"""What a profile of a script says, free of how it was recorded. Times are seconds unless named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

PHASES = (
    "interpreter", "startup", "data_wait", "forward", "backward", "optimizer", "save", "other",
    "profiler", "exit",
)  # fmt: skip
# What a training step is made of: the rest comes before, after, or from the recording itself.
STEP_PHASES = ("data_wait", "forward", "backward", "optimizer", "save", "other")

Severity = Literal["info", "warning"]


@dataclass(frozen=True, slots=True)
class Steady:
    """The steps behind the first ones, which warm up: `steps` of them in `wall_s` seconds."""

    steps: int
    wall_s: float
    phases_s: Mapping[str, float]

    def fraction(self, phase: str) -> float:
        """Return a phase's share of the steady time."""
        return self.phases_s.get(phase, 0.0) / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def compute_s(self) -> float:
        """Seconds of a step that don't wait for data."""
        return (self.wall_s - self.phases_s.get("data_wait", 0.0)) / max(self.steps, 1)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Percentiles of the steady steps' durations, in milliseconds."""

    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class Loader:
    """How batches are made, wherever that is done. Fractions are of the time of a fetch.

    `workers_needed` would end the wait; None where the steps are too few to tell. `batches` are
    those that all `processes` made, whether they were used or not.
    """

    workers: int
    batch_size: int | None
    epochs: int
    batches: int
    fetch_ms: float
    sample_ms: float | None
    collate_fraction: float
    cpu_fraction: float
    workers_needed: int | None
    is_capped_by_cores: bool
    processes: int


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line of the user's code, and its share of the samples in the making of batches."""

    file: str
    line: int
    function: str
    fraction: float


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """The time spent in a module itself, without those it calls, in forward."""

    name: str
    type: str
    self_ms: float
    calls: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth knowing: in words, with what to do about it. `fraction` is of the time."""

    code: str
    severity: Severity
    fraction: float | None
    text: str
    fix: str


@dataclass(frozen=True, slots=True)
class OpRow:
    """One op over all windows; bytes are None unless memory was recorded, shapes likewise."""

    name: str
    calls: int
    self_ms: float
    total_ms: float
    self_bytes: int | None = None
    shapes: Sequence[object] | None = None


@dataclass(frozen=True, slots=True)
class Ops:
    """The ops of all windows together, which took `steps` steps and `wall_s`.

    `device_busy_s` of that a GPU did something; None where there was none. `peak_bytes` is the most
    that was allocated at once. `traces` are the files that they come from.
    """

    rows: Sequence[OpRow] = ()
    steps: int = 0
    wall_s: float = 0.0
    device_busy_s: float | None = None
    peak_bytes: int | None = None
    traces: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the run, in seconds since its start, and how it divides into phases."""

    start_s: float
    end_s: float
    phases_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Profile:
    """All that is said about one run."""

    script: str
    exit_code: int
    interrupted: bool
    final: bool
    wall_s: float
    phases_s: Mapping[str, float]
    steps: int = 0
    overhead_s: float = 0.0
    steady: Steady | None = None
    step_ms: StepTimes | None = None
    loader: Loader | None = None
    hot_lines: Sequence[HotLine] = ()
    modules: Sequence[ModuleTime] = ()
    module_steps: int = 0
    findings: Sequence[Finding] = ()
    ops: Ops = field(default_factory=Ops)
    timeline: Sequence[Span] = ()
    stacks: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
