"""Recordings made by hand, with round numbers, for tests of what is said about them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pttool.core.profile.launch import Ended
from pttool.core.profile.recording import (
    RECORDED_PHASES,
    Fetching,
    Frame,
    Loader,
    Optimizer,
    Process,
    Samples,
    Stack,
    Steady,
    Step,
    Torch,
)

FETCH = Frame(
    "/venv/site-packages/torch/utils/data/_utils/fetch.py", 54, "_MapDatasetFetcher.fetch"
)
# 100 s of a process that began 0.5 s after its parent started it and wrote last 1 s before its end.
RUN = Ended(7, 0, False, 10.0, 111.5)
START_S, END_S = 10.5, 110.5


def phases(**seconds: float) -> dict[str, float]:
    """Return seconds for each phase that is recorded, 0 where not given."""
    return {phase: float(seconds.get(phase, 0)) for phase in RECORDED_PHASES}


def process(steady: Mapping[str, float], steps: int = 100, **fields: Any) -> Process:
    """Return a main process whose 100 s were 10 s of startup, and steady steps for the rest."""
    spent = phases(**{"startup": 10.0, "other": 90 - sum(steady.values()), **steady})
    values: dict[str, Any] = {
        "pid": RUN.pid,
        "role": "main",
        "is_final": True,
        "start_s": START_S,
        "end_s": END_S,
        "argv": ("train.py",),
        "phase": "other",
        "phases_s": spent,
        "phase_calls": {},
        "steps": steps + 3,
        "step_source": "loader",
        "step_stride": 1,
        "step_rows": (),
        "steady": Steady(steps, phases(**{**spent, "startup": 0.0})),
        "loaders": (),
        "optimizers": (),
        "windows": (),
        "modules": (),
        "samples": Samples(100.0, 0, ()),
        "torch": Torch("2.14", 4, False, 0, 0, 0),
        "cores": 4,
        "sampler_cpu_s": 0.0,
        "notes": (),
    }
    return Process(**{**values, **fields})


def loader(**fields: Any) -> Loader:
    """Return a loader of one epoch, without workers."""
    values: dict[str, Any] = {
        "dataset": "__main__.Slow",
        "batch_size": 8,
        "workers": 0,
        "persistent_workers": False,
        "pin_memory": False,
        "prefetch_factor": None,
        "start_method": None,
        "epochs": 1,
        "batches": 103,
        "iter_s": 0.0,
        "first_wait_s": 0.0,
        "wait_s": 50.0,
    }
    return Loader(**{**values, **fields})


def fetching(**fields: float) -> Fetching:
    """Return the counters of a process that fetched 100 batches of 8 in 60 s, 30 s of it CPU."""
    made = Fetching(100, 800, 60.0, 3.0, 15.0, -1, 20.0, 110.0)
    return replace(made, **fields)


def optimizer(**fields: Any) -> Optimizer:
    """Return an optimizer of 60 parameters on a CPU, left to choose how it loops."""
    values: dict[str, Any] = {
        "type": "Adam",
        "steps": 103,
        "parameters": 60,
        "foreach": None,
        "fused": None,
        "device": "cpu",
    }
    return Optimizer(**{**values, **fields})


def stack(phase: str, count: int, *frames: Frame) -> Stack:
    """Return a stack that was seen `count` times."""
    return Stack(phase, count, frames)


def sampled(*stacks: Stack) -> Samples:
    """Return samples of just these stacks."""
    return Samples(100.0, sum(each.count for each in stacks), stacks)


def step(index: int, start_s: float, is_steady: bool = True, **seconds: float) -> Step:
    """Return a step."""
    return Step(index, start_s, is_steady, phases(**seconds))
