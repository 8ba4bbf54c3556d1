"""The recorder of one process: its parts, when each begins, and what they write together."""

import atexit
import os
from _thread import get_ident

from .clock import Clock
from .fetching import FetchHook
from .forward import Forward
from .hooking import hook_main, hook_workers
from .imports import AfterImport
from .loaders import Loaders
from .notes import Notes
from .optimizing import OptimizerHook
from .sampler import Sampler
from .steps import Steps
from .windows import Windows
from .writing import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .settings import Settings

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Recorder:
    """Records the script's process, or a child of it that may become a DataLoader's worker."""

    def __init__(self, settings: "Settings") -> None:
        self.settings = settings
        self.role = "child"
        self.notes = Notes()
        self.clock = Clock()
        self.windows = Windows(settings, self.clock, self.notes)
        self.steps = Steps(self.clock, self.windows)
        self.forward = Forward(self.clock, self.steps, self.notes, is_on=settings.modules)
        self.loaders = Loaders()
        self.optimizers = OptimizerHook(self.clock, self.steps, self.notes)
        self.fetching = FetchHook(settings.folder, self.notes)
        self.sampler = Sampler(settings.hz, FOLDER, self.notes)
        self.torch: ModuleType | None = None

    def start_main(self) -> None:
        """Record the script: its clock runs from now on, all else once it has imported torch."""
        self.role = "main"
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self.sampler.resume,
            after_in_child=self._forked,
        )
        atexit.register(self._finish)  # the first to be registered, so the last to be called
        AfterImport("torch", self._hook_script, self.notes)

    def start_child(self) -> None:
        """Record what a process that multiprocessing started fetches as a worker, no more."""
        self.clock.is_on = False
        os.register_at_fork(after_in_child=self._forked)  # as the fork server does
        AfterImport("torch", self._hook_child, self.notes)

    def write(self, *, is_final: bool = False) -> None:
        """Write all that is known by now."""
        with self.notes:
            write(self, is_final=is_final)

    def start_worker(self) -> "Recorder":
        """Return the recorder of a DataLoader's worker, which this process turns out to be."""
        worker = Recorder(self.settings)
        worker.role, worker.torch = "worker", self.torch
        worker.clock.is_on = False
        worker.sampler.start(worker.clock.thread, self.fetching.phase, worker.write)
        return worker

    def finish_worker(self) -> None:
        """Write what a worker's samples tell, at the end of its loop."""
        with self.notes:
            self.sampler.pause()
        self.write(is_final=True)

    def _hook_script(self, torch: "ModuleType") -> None:
        before = self.clock.enter("profiler")
        self.torch = torch
        self.windows.use(torch)
        hook_main(self)
        hook_workers(self)
        self.clock.leave(before)
        self.sampler.start(self.clock.thread, lambda: self.clock.phase, self.write)

    def _hook_child(self, torch: "ModuleType") -> None:
        self.torch = torch
        hook_workers(self)

    def _before_fork(self) -> None:
        """Leave nothing running: the child would have half of it."""
        with self.notes:
            if get_ident() == self.clock.thread:
                self.windows.finish()
            self.sampler.pause()

    def _forked(self) -> None:
        """Leave the script's record to the parent."""
        self.role = "child"
        self.windows.is_open = False
        self.clock.is_on = False
        self.sampler.forget()

    def _finish(self) -> None:
        if self.role != "main":
            return
        before = self.clock.enter("profiler")
        with self.notes:
            self.sampler.pause()
            self.windows.finish()
            self.steps.settle()
        self.write(is_final=True)
        self.clock.leave(before)
