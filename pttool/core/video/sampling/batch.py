"""Sample many videos: what is complete already, what is to do, and what came of each."""

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from pttool.core.video.outputs.journal import Kept, identity, is_complete, read_journal, remember
from pttool.core.video.outputs.refused import OutputError
from pttool.core.video.outputs.saving import Saving
from pttool.core.video.outputs.staging import remove_abandoned
from pttool.core.video.sampling.one_video import Outcome, Task, refused, sample
from pttool.core.workers import WorkerDied, Workers
from pttool.errors import InputError

# Told how many videos are done, how many there are, and how many of those done failed.
Progress = Callable[[int, int, int], object]


def sample_each(
    tasks: Sequence[Task],
    saving: Saving | None,
    *,
    resume: bool,
    processes: int,
    progress: Progress,
) -> list[Outcome]:
    """Return the outcomes of the tasks, in their order.

    With `resume`, a video whose frames are complete and were made the same way isn't done again.
    However this ends, no temporary file of it stays, and no process. Raises OutputError at the
    first frames that can't be written.
    """
    with _tidied(saving):
        outcomes = _complete_ones(tasks, saving) if resume else {}
        # For a contact sheet, frames that are on disk are decoded once more.
        again = {number for number in outcomes if tasks[number].has_tiles}
        pending = sorted({*range(len(tasks))} - {*outcomes} | again)
        todo = [
            replace(tasks[number], saving=None) if number in again else tasks[number]
            for number in pending
        ]
        failures = 0
        with contextlib.closing(_done(todo, processes)) as done:
            for at, outcome in done:
                if isinstance(outcome.failure, OutputError):
                    raise outcome.failure
                _remember(todo[at], outcome)
                outcomes[pending[at]] = outcome
                failures += outcome.error is not None
                progress(len(outcomes), len(tasks), failures)
    return [outcomes[number] for number in range(len(tasks))]


def _done(tasks: Sequence[Task], processes: int) -> Generator[tuple[int, Outcome], None, None]:
    if processes == 1 or len(tasks) < 2:
        yield from ((number, sample(task)) for number, task in enumerate(tasks))
        return
    workers: Workers[Task, Outcome] = Workers(sample, processes)
    with contextlib.closing(workers.results(tasks)) as results:
        for number, result in results:
            if isinstance(result, WorkerDied):
                message = "the process that decoded it was killed"
                hint = "the file is badly damaged, or memory ran out"
                yield number, refused(tasks[number], InputError, message, hint)
            else:
                yield number, result


@contextlib.contextmanager
def _tidied(saving: Saving | None) -> Iterator[None]:
    """Remove what killed runs left in the output folder, and in the end what this one did."""
    if saving is None:
        yield
        return
    is_new = not saving.folder.exists()
    remove_abandoned(saving.folder)
    try:
        yield
    finally:
        remove_abandoned(saving.folder)
        if is_new:
            with contextlib.suppress(OSError):  # it holds frames, or was never made
                saving.folder.rmdir()


def _complete_ones(tasks: Sequence[Task], saving: Saving | None) -> dict[int, Outcome]:
    """Return the outcomes of the tasks that need not be done, by their numbers."""
    if saving is None:
        return {}
    journal = read_journal(saving.folder)
    found: dict[int, Outcome] = {}
    for number, task in enumerate(tasks):
        kept = journal.get(task.source.name)
        made_with = _made_with(task, saving)
        if kept is None or kept.entry.get("output") != task.output:
            continue
        if not is_complete(saving.folder, kept, made_with, task.source.path):
            continue
        if not (task.strict and kept.entry["warnings"]):
            found[number] = Outcome(kept.entry, kept.outputs)
    return found


def _remember(task: Task, outcome: Outcome) -> None:
    saving = task.saving
    if saving is None or outcome.error is not None:
        return
    kept = Kept(
        _made_with(task, saving), identity(task.source.path), outcome.outputs, outcome.entry
    )
    remember(saving.folder, task.source.name, kept)


def _made_with(task: Task, saving: Saving) -> dict[str, Any]:
    """Return the options that a video's frames depend on."""
    saved = {name: value for name, value in asdict(saving).items() if name != "folder"}
    return {"sampling": asdict(task.sampling), "saving": saved, "rotate": task.rotate}
