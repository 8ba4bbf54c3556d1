"""The ops of a model's calls, seen by torch.profiler."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from torch.autograd.profiler import profile

from pttool.core.profile.ops import OpTable, op_table


def op_times(call: Callable[[], object], *, device: str, runs: int, by_shape: bool) -> OpTable:
    """Make `runs` calls under torch.profiler and return their ops, summed (see `op_table`).

    The peak of memory is that of the call which took most. Meanwhile nothing is written on stderr:
    kineto and torch's allocator write lines there that are no news to anyone.
    """
    use_device = None if device == "cpu" else device
    with tempfile.TemporaryDirectory(prefix="pttool-") as folder, _silent_stderr():
        trace = Path(folder, "trace.json")
        # Not torch.profiler's, whose first use imports torch.compile: 900 modules, 2 s of CPU.
        with profile(
            use_kineto=True, use_device=use_device, record_shapes=True, profile_memory=True
        ) as profiler:
            for _ in range(runs):
                call()
        profiler.export_chrome_trace(str(trace))
        return op_table([trace], by_shape=by_shape)


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Point file descriptor 2 at nothing."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
