"""Read what the recorder left in its folder."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pttool.core.profile.recording import (
    FETCHING,
    RECORDED_PHASES,
    Fetching,
    Frame,
    Loader,
    Module,
    Optimizer,
    Process,
    Recording,
    Samples,
    Stack,
    Steady,
    Step,
    Torch,
    Window,
)

Document = Mapping[str, Any]


def read_recording(folder: Path, pid: int) -> Recording:
    """Read what the script's process `pid` and its workers left in a folder.

    A file that was cut short, as by a full disk, counts as missing.
    """
    processes = [_process(document, folder) for document in _documents(folder)]
    main = next((each for each in processes if each.pid == pid), None)
    workers = tuple(each for each in processes if each.role == "worker")
    return Recording(main, workers, tuple(_fetching(folder)))


def _documents(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.glob("rec-*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield json.loads(path.read_bytes())


def _fetching(folder: Path) -> Iterator[Fetching]:
    for path in sorted(folder.glob("fetch-*.bin")):
        counters = path.read_bytes()
        if len(counters) == FETCHING.size:
            yield Fetching(*FETCHING.unpack(counters))


def _process(document: Document, folder: Path) -> Process:
    steady, torch = document["steady"], document["torch"]
    return Process(
        pid=document["pid"],
        role=document["role"],
        is_final=document["is_final"],
        start_s=document["start_s"],
        end_s=document["end_s"],
        argv=tuple(document["argv"]),
        phase=document["phase"],
        phases_s=document["phases_s"],
        phase_calls=document["phase_calls"],
        steps=document["steps"],
        step_source=document["step_source"],
        step_stride=document["step_stride"],
        step_rows=tuple(_step(row) for row in document["step_rows"]),
        steady=Steady(steady["steps"], _by_phase(steady["phases_s"])),
        loaders=tuple(Loader(**each) for each in document["loaders"]),
        optimizers=tuple(Optimizer(**each) for each in document["optimizers"]),
        windows=tuple(_window(each, folder) for each in document["windows"]),
        modules=tuple(Module(*row) for row in document["modules"]),
        samples=_samples(document["samples"]),
        torch=None if torch is None else Torch(**torch),
        cores=document["cores"],
        sampler_cpu_s=document["sampler_cpu_s"],
        notes=tuple(document["notes"]),
        measured_steps=document["measured_steps"],
    )


def _step(row: list[float]) -> Step:
    """Return a step from index, start, whether it is steady, and the seconds of each phase."""
    index, start_s, is_steady, *phases_s = row
    return Step(int(index), start_s, bool(is_steady), _by_phase(phases_s))


def _by_phase(seconds: list[float]) -> dict[str, float]:
    return dict(zip(RECORDED_PHASES, seconds, strict=True))


def _window(each: Document, folder: Path) -> Window:
    name = each["trace"]
    trace = folder / name if name is not None and (folder / name).is_file() else None
    return Window(trace, each["first_step"], each["steps"], each["start_s"], each["end_s"])


def _samples(document: Document) -> Samples:
    frames = [Frame(*each) for each in document["frames"]]
    stacks = [
        Stack(phase, count, tuple(frames[index] for index in indices))
        for phase, count, indices in document["stacks"]
    ]
    return Samples(document["hz"], document["count"], tuple(stacks))
