"""What fetching a batch costs the process that does it, in counters that outlive it."""

import os
from _thread import get_ident
from time import perf_counter, thread_time

from .inlining import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap
    from typing import Any

    from .notes import Notes

FIELDS = 8  # as pttool.core.profile.recording.Fetching


class FetchHook(Hook):
    """The hook of the two fetchers' `fetch`: the dataset's items, then the collate function.

    The counters stand in a file that is mapped into memory: nothing is lost when the process is
    killed, as workers are. A fetch that raises, as at the end of a dataset, counts for nothing.
    """

    def __init__(self, folder: str, notes: "Notes") -> None:
        self._folder, self._notes = folder, notes
        self._pid = 0
        self._thread = 0
        self._counters = [0.0] * FIELDS
        self._file: mmap | None = None
        self._pack: Callable[..., None]
        self._is_busy = False
        self._collate: tuple[float, int] | None = None

    def enter(self, _fetcher: "Any") -> "tuple[float, float] | None":
        """Begin a fetch; None in another thread than the first that fetched."""
        if self._pid != os.getpid():
            with self._notes:
                self._begin()
        if get_ident() != self._thread:
            return None
        self._collate = None
        self._is_busy = True
        return perf_counter(), thread_time()

    def mark(self, fetcher: "Any", samples: "Any") -> None:
        """Say that collating begins."""
        if get_ident() == self._thread:
            count = len(samples) if fetcher.auto_collation else 1
            self._collate = (perf_counter(), count)

    def leave(self, token: "tuple[float, float]") -> None:
        """Count the fetch."""
        self._is_busy = False
        if self._collate is None:
            return
        (start_s, start_cpu_s), (collate_s, samples) = token, self._collate
        now, counters = perf_counter(), self._counters
        counters[0] += 1
        counters[1] += samples
        counters[2] += now - start_s
        counters[3] += now - collate_s
        counters[4] += thread_time() - start_cpu_s
        counters[6] = counters[6] or start_s
        counters[7] = now
        if self._file is not None:
            self._pack(self._file, 0, *counters)

    def phase(self) -> str:
        """Return the phase that a worker is in, as a sampler wants it: none while it waits."""
        return "data_wait" if self._is_busy else ""

    def _begin(self) -> None:
        """Start the counters of this process; a forked one has its parent's in memory."""
        from mmap import mmap
        from struct import Struct

        from torch.utils.data import get_worker_info

        self._pack = Struct(f"<{FIELDS}d").pack_into
        self._pid, self._thread, self._file = os.getpid(), get_ident(), None
        info = get_worker_info()
        self._counters = [0.0] * FIELDS
        self._counters[5] = -1.0 if info is None else float(info.id)
        path = os.path.join(self._folder, f"fetch-{self._pid}.bin")
        with open(path, "wb+") as file:
            file.write(bytes(8 * FIELDS))
            file.flush()
            self._file = mmap(file.fileno(), 8 * FIELDS)
