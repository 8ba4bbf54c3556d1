"""Write what a process's recorder knows, as pttool.core.profile.recording.Process."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .recorder import Recorder


def write(recorder: "Recorder", *, is_final: bool) -> None:
    """Replace the process's file as a whole; raises OSError, as on a full disk."""
    import json

    path = os.path.join(recorder.settings.folder, f"rec-{os.getpid()}.json")
    text = json.dumps(_document(recorder, is_final=is_final))
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)
    recorder.steps.is_awaited = True


def _document(recorder: "Recorder", *, is_final: bool) -> "dict[str, Any]":
    clock, steps = recorder.clock, recorder.steps
    seconds = clock.read()
    return {
        "pid": os.getpid(),
        "role": recorder.role,
        "is_final": is_final,
        "start_s": clock.start_s,
        "end_s": clock.start_s + sum(seconds.values()),
        "argv": list(getattr(sys, "argv", [])),
        "phase": clock.phase,
        "phases_s": seconds,
        "phase_calls": clock.calls.copy(),
        "steps": steps.count,
        "measured_steps": steps.measured_count,
        "step_source": steps.source,
        "step_stride": steps.stride,
        "step_rows": steps.rows.copy(),
        "steady": {"steps": steps.steady_count, "phases_s": steps.steady_s},
        "loaders": [kind.copy() for kind in recorder.loaders.kinds.copy().values()],
        "optimizers": [kind.copy() for kind in recorder.optimizers.kinds.copy().values()],
        "windows": recorder.windows.written.copy(),
        "modules": recorder.forward.written(),
        "samples": recorder.sampler.written(),
        "torch": _torch(recorder.torch),
        "cores": _cores(),
        "sampler_cpu_s": recorder.sampler.cpu_s,
        "notes": recorder.notes.texts.copy(),
    }


def _torch(torch: "Any") -> "dict[str, Any] | None":
    """Return what torch says; Dynamo is asked only where the script has loaded it."""
    if torch is None:
        return None
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", {})
    failures = getattr(dynamo, "guard_failures", {})
    return {
        "version": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.is_initialized(),
        "graphs": counters.get("stats", {}).get("unique_graphs", 0),
        "graph_breaks": sum(counters.get("graph_break", {}).values()),
        "recompiles": sum(len(each) for each in failures.copy().values()),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
