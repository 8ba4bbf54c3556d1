"""Do tasks in worker processes, which end with this one, however it ends."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
DONE = None  # sent to a worker; a closed connection isn't seen while a sibling has a copy
ENDING = (signal.SIGTERM, signal.SIGHUP)
BUG = 1  # what multiprocessing exits with after an exception, whose traceback it has shown


class WorkerDied:
    """Stands for the result of a task whose worker a signal ended, as libav's crash does."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: "Connection[Any, Any]"
    task: int


class Workers(Generic[T, R]):
    """Runs `work`, a function of a module, over tasks in `processes` processes."""

    def __init__(self, work: Callable[[T], R], processes: int) -> None:
        self._work = work
        self._processes = processes
        # A fork has the libraries loaded already: 5 ms, not 300. Other systems can't be trusted
        # with it once threads run.
        self._context: BaseContext = multiprocessing.get_context(
            "fork" if sys.platform == "linux" else "spawn"
        )
        self._running: list[_Worker] = []

    def results(self, tasks: Sequence[T]) -> Generator[tuple[int, R | WorkerDied], None, None]:
        """Yield the number of each task and what came of it, as they are done.

        The processes end with the iterator, be it by an exception.
        """
        waiting = iter(range(len(tasks)))
        try:
            for number in itertools.islice(waiting, self._processes):
                self._start(number, tasks[number])
            while self._running:
                for worker in self._ready():
                    yield worker.task, self._received(worker)
                    self._go_on(worker, next(waiting, None), tasks)
        finally:
            self._stop()

    def _start(self, number: int, task: T) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(theirs, self._work), daemon=True
        )
        with _signals_held():
            process.start()
        theirs.close()
        self._running.append(_Worker(process, ours, number))
        _send(ours, task)

    def _ready(self) -> list[_Worker]:
        ready = wait([worker.connection for worker in self._running])
        return [worker for worker in self._running if worker.connection in ready]

    def _received(self, worker: _Worker) -> R | WorkerDied:
        try:
            result: R = worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            if worker.process.exitcode == BUG:
                raise RuntimeError("a worker failed; its traceback is above") from None
            return WorkerDied()
        return result

    def _go_on(self, worker: _Worker, number: int | None, tasks: Sequence[T]) -> None:
        """Give a worker its next task; one that died is replaced, one without a task ended."""
        if number is not None and worker.process.is_alive():
            worker.task = number
            _send(worker.connection, tasks[number])
            return
        self._running.remove(worker)
        _send(worker.connection, DONE)
        worker.process.join()
        worker.connection.close()
        if number is not None:
            self._start(number, tasks[number])

    def _stop(self) -> None:
        for worker in self._running:
            worker.process.terminate()
        for worker in self._running:
            worker.process.join()
            worker.connection.close()
        self._running.clear()


def _send(connection: "Connection[Any, Any]", task: object) -> None:
    with contextlib.suppress(ConnectionError):  # it has died: what it sends back will tell
        connection.send(task)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold back what would reach a new worker while it still has its parent's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, *ENDING])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: "Connection[Any, Any]", work: Callable[[Any], Any]) -> None:
    """Do tasks until there are no more. Ctrl-C stays held: the parent hears it and ends us."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while (task := connection.recv()) is not DONE:
        connection.send(work(task))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(BUG)
