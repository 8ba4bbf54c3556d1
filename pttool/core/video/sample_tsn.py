"""Choose the frames that stand for videos, as temporal segment networks do, and save them."""

from collections.abc import Sequence
from pathlib import Path

from pttool.core.report import Column, Report
from pttool.core.video.outputs.manifest import FIELDS, Entry, sampled
from pttool.core.video.outputs.products import Products, check_products, write_products
from pttool.core.video.sampling.batch import Progress, sample_each
from pttool.core.video.sampling.naming import Source, output_names, sources
from pttool.core.video.sampling.one_video import Outcome, Task, refused
from pttool.core.video.tsn import Sampling, frame_indices
from pttool.errors import InputError, PttoolError

COLUMNS = (
    Column("file", "File"),
    Column("status", "Status"),
    Column("n", "Frames", "count"),
    Column("indices", "Indices", "list"),
    Column("output", "Output", optional=True),
)
FOOTER = (
    Column("videos", "Videos", "count"),
    Column("sampled", "Sampled", "count"),
    Column("failed", "Failed", "count"),
)
NOTHING = Products()


def sample_tsn(
    paths: Sequence[Path],
    sampling: Sampling,
    products: Products = NOTHING,
    *,
    frames: int | None = None,
    root: Path | None = None,
    rotate: bool = True,
    strict: bool = False,
    processes: int = 1,
    progress: Progress = lambda done, total, failed: None,
) -> Report:
    """Return which frames stand for each video, and write them where `products` says so.

    With `frames`, a number, no file is opened. Names are relative to `root`, by default the working
    folder. A bad video doesn't stop the others: the report carries the failure. Raises InputError
    for a single one that is bad, UsageError for outputs that are in the way, UnavailableError where
    cv2 is needed and broken.
    """
    videos = sources(paths, root)
    tasks = _tasks(videos, sampling, products, rotate=rotate, strict=strict)
    check_products(tasks, products)
    if frames is not None:
        nameless = Task(Source(Path(), "", ""), sampling)
        outcomes = [_counted(task, frames) for task in tasks or [nameless]]
    else:
        outcomes = sample_each(
            tasks, products.saving, resume=products.resume, processes=processes, progress=progress
        )
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    if len(outcomes) == 1 and failures:
        raise failures[0]
    write_products(outcomes, products)
    return _report([outcome.entry for outcome in outcomes], failures)


def _tasks(
    videos: Sequence[Source], sampling: Sampling, products: Products, *, rotate: bool, strict: bool
) -> list[Task]:
    saving = products.saving
    outputs = {} if saving is None else output_names(videos, saving.suffix)
    return [
        Task(
            video,
            sampling,
            saving,
            outputs.get(video.name),
            rotate=rotate,
            strict=strict,
            has_tiles=products.sheet is not None,
        )
        for video in videos
    ]


def _counted(task: Task, frames: int) -> Outcome:
    """Sample a video that has so many frames, unseen."""
    try:
        indices = frame_indices(frames, task.sampling, task.source.name)
    except InputError as error:
        return refused(task, InputError, error.message, error.hint)
    return Outcome(sampled(task.source, indices, frames=frames, seed=task.sampling.seed))


def _report(entries: Sequence[Entry], failures: Sequence[PttoolError]) -> Report:
    notes = [f"{entry['file']}: {said}" for entry in entries for said in entry["warnings"]]
    failure: PttoolError | None = failures[0] if failures else None
    if len(failures) > 1:
        notes += [error.message for error in failures]
        failure = type(failures[0])(
            f"{len(failures)} of {len(entries)} videos can't be sampled", "the notes say why"
        )
    return Report(
        fields=FIELDS,
        columns=COLUMNS,
        items=entries,
        summary={
            "videos": len(entries),
            "sampled": len(entries) - len(failures),
            "failed": len(failures),
        },
        footer=FOOTER,
        notes=tuple(notes),
        failure=failure,
    )
