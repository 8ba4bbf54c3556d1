"""Which of torch's functions the hooks go into."""

import sys
from _thread import get_ident

from .inlining import Hook, inline
from .loaders import IterHook, NextHook
from .spawning import SpawnHook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .clock import Clock
    from .recorder import Recorder
    from .windows import Windows


class PhaseHook(Hook):
    """The hook of a function that is a phase of its own."""

    def __init__(self, clock: "Clock", phase: str) -> None:
        self._clock, self._phase = clock, phase

    def enter(self) -> str | None:
        """Begin the phase."""
        return self._clock.enter(self._phase)

    def leave(self, before: str) -> None:
        """End it."""
        self._clock.leave(before)


class OwnProfilerHook(Hook):
    """The hook of what makes a profiler: the script's own comes first."""

    def __init__(self, clock: "Clock", windows: "Windows") -> None:
        self._clock, self._windows = clock, windows

    def enter(self) -> None:
        """Leave the profiler of the main thread, each thread has its own, to the script."""
        if get_ident() == self._clock.thread and self._clock.is_on:
            self._windows.script_profiles()


class WorkerHook(Hook):
    """The hook of a DataLoader worker's loop, in a process of its own."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder

    def enter(self) -> "Recorder | None":
        """Record a worker from here on."""
        with self._recorder.notes:
            return self._recorder.start_worker()
        return None

    def leave(self, worker: "Recorder") -> None:
        """Write what it did."""
        worker.finish_worker()


def hook_main(recorder: "Recorder") -> None:
    """Hook what the script's main thread does."""
    torch: Any = recorder.torch
    clock, notes = recorder.clock, recorder.notes
    loader = torch.utils.data.dataloader
    put = _Putting(recorder)
    put(torch.nn.Module._wrapped_call_impl, recorder.forward, "self", may_be_traced=True)
    put(torch.autograd.backward, PhaseHook(clock, "backward"), may_be_traced=True)
    put(torch.autograd.grad, PhaseHook(clock, "backward"), may_be_traced=True)
    put(torch.save, PhaseHook(clock, "save"))
    put(
        torch.optim.Optimizer.profile_hook_step,
        recorder.optimizers,
        "args",
        inner="wrapper",
        may_be_traced=True,
    )
    put(loader.DataLoader.__iter__, IterHook(clock, recorder.loaders, notes), "self")
    steps = NextHook(clock, recorder.loaders, recorder.steps, notes)
    put(loader._BaseDataLoaderIter.__next__, steps, "self")
    own = OwnProfilerHook(clock, recorder.windows)
    profilers = torch.autograd.profiler
    for each in (
        torch.profiler.profiler._KinetoProfile, profilers.profile, profilers.emit_itt,
        profilers.emit_nvtx,
    ):  # fmt: skip
        put(each.__init__, own)
    put(sys.modules["multiprocessing.util"].spawnv_passfds, SpawnHook(recorder.settings), "args")


def hook_workers(recorder: "Recorder") -> None:
    """Hook what fetches batches, in whichever process."""
    data: Any = recorder.torch.utils.data._utils  # type: ignore[union-attr]
    put = _Putting(recorder)
    for fetcher in (data.fetch._MapDatasetFetcher, data.fetch._IterableDatasetFetcher):
        put(fetcher.fetch, recorder.fetching, "self", before_call="collate_fn")
    put(data.worker._worker_loop, WorkerHook(recorder))


class _Putting:
    """Puts hooks in place; one that doesn't fit a torch to come costs its numbers, no more."""

    def __init__(self, recorder: "Recorder") -> None:
        self._notes = recorder.notes
        self._dynamo: Any = recorder.torch._C._dynamo.eval_frame  # type: ignore[union-attr]

    def __call__(self, function: "Any", hook: Hook, arguments: str = "", **how: "Any") -> None:
        with self._notes:
            self._keep_from_dynamo(hook)
            inline(function, hook, arguments, **how)

    def _keep_from_dynamo(self, hook: Hook) -> None:
        """Have Dynamo compile neither a hook that is called next to compiled code, nor below it."""
        skip = self._dynamo._FrameAction.SKIP
        for name in ("enter", "mark", "leave"):
            method = getattr(type(hook), name, None)
            if method is not None:
                strategy = self._dynamo._FrameExecStrategy(skip, skip)
                self._dynamo.set_code_exec_strategy(method.__code__, strategy)
