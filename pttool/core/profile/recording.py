"""What the recorder knows of a script: the one description of the files that it writes.

The recorder (`inject/`) runs inside the script's process and writes into one temporary folder:

  rec-PID.json      one for each process that was recorded, replaced as a whole when it is
                    written again, which is every 2 s at most: the fields of `Process`
  fetch-PID.bin     one for each process that fetched batches: eight little-endian float64, the
                    fields of `Fetching` in their order; written through a shared mapping after
                    each batch, so that what a killed worker did still counts
  trace-PID-N.json  one for each window of torch.profiler that was closed: a Chrome trace

All times are seconds of CLOCK_MONOTONIC (time.perf_counter), which all processes share, or
differences of them. Durations of a phase are exclusive: at any moment the main thread is in one.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What the recorder tells apart, in the order of a run. `interpreter` (before the recorder starts)
# and `exit` (after its last word) are what the parent's clock adds.
RECORDED_PHASES = (
    "startup", "data_wait", "forward", "backward", "optimizer", "save", "other", "profiler",
)  # fmt: skip
FETCHING = struct.Struct("<8d")


@dataclass(frozen=True, slots=True)
class Step:
    """One step: from the request for a batch to the request for the next one.

    `phases_s` has the RECORDED_PHASES. A steady step is none of the first three, none that a
    window of torch.profiler touched.
    """

    index: int
    start_s: float
    is_steady: bool
    phases_s: Mapping[str, float]

    @property
    def duration_s(self) -> float:
        """Its wall time, less what opening and closing a profiler took."""
        return sum(self.phases_s.values()) - self.phases_s["profiler"]


@dataclass(frozen=True, slots=True)
class Steady:
    """The sum of all steady steps; `phases_s` has the RECORDED_PHASES."""

    steps: int
    phases_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Loader:
    """All DataLoaders with the same settings and type of dataset, as the main process met them.

    `batches` were handed out in `wait_s`, `first_wait_s` of it for the first batch of each of
    `epochs` iterators, which took `iter_s` to make (with workers: to start them).
    """

    dataset: str
    batch_size: int | None
    workers: int
    persistent_workers: bool
    pin_memory: bool
    prefetch_factor: int | None
    start_method: str | None
    epochs: int
    batches: int
    iter_s: float
    first_wait_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer that stepped; `foreach` and `fused` as given, None where torch chooses."""

    type: str
    steps: int
    parameters: int
    foreach: bool | None
    fused: bool | None
    device: str | None


@dataclass(frozen=True, slots=True)
class Window:
    """A window of torch.profiler over whole steps; `trace` is None where it couldn't be written."""

    trace: Path | None
    first_step: int
    steps: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Module:
    """A module's calls and the time in it but not in its children, over the steps measured.

    `root` is the type of the module that the script called, `name` the qualified name below it,
    empty for the root itself.
    """

    root: str
    name: str
    type: str
    calls: int
    self_s: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of Python that was seen running."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack, outermost frame first, seen `count` times in a phase (in a worker: data_wait)."""

    phase: str
    count: int
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """The stacks that the sampler kept, of `count` that it saw; `hz` 0 is a sampler turned off."""

    hz: float
    count: int
    stacks: tuple[Stack, ...]


@dataclass(frozen=True, slots=True)
class Torch:
    """What a process knows of torch; `graphs` and `graph_breaks` are Dynamo's, 0 if unused."""

    version: str
    threads: int
    cuda: bool
    graphs: int
    graph_breaks: int
    recompiles: int


@dataclass(frozen=True, slots=True)
class Process:
    """One rec-PID.json; `role` is main or worker (of a DataLoader).

    `phases_s` has the RECORDED_PHASES and sums to `end_s - start_s`; a worker has none of it, nor
    what follows but `samples` and `torch`. `phase` is the one it was in when this was written,
    which `is_final` says was at the very end. `step_source` says what a step is here: a batch of
    a loader, an optimizer's step or a root's forward. `step_rows` are every `step_stride`-th step,
    1024 at most. `measured_steps` are those that `modules` were timed in: the first 64 and then
    one of eight, none in a window. `sampler_cpu_s` is CPU time.
    """

    pid: int
    role: str
    is_final: bool
    start_s: float
    end_s: float
    argv: tuple[str, ...]
    phase: str
    phases_s: Mapping[str, float]
    phase_calls: Mapping[str, int]
    steps: int
    step_source: str | None
    step_stride: int
    step_rows: tuple[Step, ...]
    steady: Steady
    loaders: tuple[Loader, ...]
    optimizers: tuple[Optimizer, ...]
    windows: tuple[Window, ...]
    modules: tuple[Module, ...]
    samples: Samples
    torch: Torch | None
    cores: int
    sampler_cpu_s: float
    notes: tuple[str, ...]
    measured_steps: int = 0


@dataclass(frozen=True, slots=True)
class Fetching:
    """What fetching batches cost one process: a fetch-PID.bin.

    `fetch_s` is wall time for `batches` of `samples`, `collate_s` of it in the collate function,
    `cpu_s` the CPU time of the fetching thread; `worker` is -1 in the main process. `first_s` and
    `last_s` are when the first fetch began and the last one ended.
    """

    batches: float
    samples: float
    fetch_s: float
    collate_s: float
    cpu_s: float
    worker: float
    first_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class Recording:
    """All that was recorded: `main` is None where the recorder never ran, as under python -I."""

    main: Process | None
    workers: tuple[Process, ...] = ()
    fetching: tuple[Fetching, ...] = ()
