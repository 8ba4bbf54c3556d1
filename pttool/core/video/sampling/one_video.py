"""Sample one video: choose its frames, decode them, save them; a worker's whole task."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from pttool.core.video.decode import open_video
from pttool.core.video.outputs.contact_sheet import Tile, tile
from pttool.core.video.outputs.journal import Identity, claim
from pttool.core.video.outputs.manifest import Entry, failed, sampled
from pttool.core.video.outputs.saving import PictureWriter, Saving, Writer
from pttool.core.video.outputs.stacks import StackWriter
from pttool.core.video.outputs.staging import staged
from pttool.core.video.sampling.naming import Source
from pttool.core.video.tsn import Sampling, frame_indices
from pttool.core.video.types import UnreadableFrameError, Video
from pttool.errors import InputError, PttoolError, UnavailableError


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with a video: save its frames as `output`, make tiles of a contact sheet, or both.

    `strict` refuses a video with fewer readable frames than its packets claim.
    """

    source: Source
    sampling: Sampling
    saving: Saving | None = None
    output: str | None = None
    rotate: bool = True
    strict: bool = False
    has_tiles: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task: what the manifest says, the files written, tiles, or why nothing."""

    entry: Entry
    outputs: dict[str, Identity] = field(default_factory=dict)
    tiles: tuple[Tile, ...] = ()
    error: tuple[type[PttoolError], str, str | None] | None = None  # an exception is no message

    @property
    def failure(self) -> PttoolError | None:
        """The error to raise for it."""
        if self.error is None:
            return None
        kind, message, hint = self.error
        return kind(message, hint)


def sample(task: Task) -> Outcome:
    """Do a task. What is wrong with the video or the output comes back in the outcome."""
    try:
        with open_video(task.source.path, rotate=task.rotate) as video:
            try:
                return _sampled(task, video)
            except UnreadableFrameError:
                video.decoded_index()
            return _sampled(task, video)
    except InputError as error:
        return refused(task, InputError, error.message, error.hint)
    except UnavailableError as error:
        return refused(task, type(error), error.message, error.hint)
    except OSError as error:  # as of a file that goes while it is read
        hint = "check that it is there, and stays there"
        return refused(task, InputError, error.strerror or str(error), hint)


def refused(task: Task, kind: type[PttoolError], message: str, hint: str | None) -> Outcome:
    """Return the outcome of a task that failed; the message names the video, the reason doesn't."""
    reason = message.removeprefix(f"{task.source.path}: ")
    if kind is InputError and task.source.name:
        message = f"{task.source.path}: {reason}"
    entry = failed(task.source, reason, task.sampling.seed)
    return Outcome(entry, error=(kind, message, hint))


def _sampled(task: Task, video: Video) -> Outcome:
    index = video.index
    if video.damage is not None:
        raise InputError(
            video.damage, "mend it first: ffmpeg -i FILE out.mp4 makes what it can of it"
        )
    if task.strict and video.shortfall is not None:
        raise InputError(video.shortfall, "without --strict the readable frames are sampled")
    indices = frame_indices(len(index), task.sampling, task.source.name)
    outputs: dict[str, Identity] = {}
    tiles: tuple[Tile, ...] = ()
    if task.saving is not None or task.has_tiles:
        outputs, tiles = _decoded(task, video, indices)
    entry = sampled(
        task.source,
        indices,
        frames=len(index),
        seed=task.sampling.seed,
        pts=[index.pts[at] for at in indices],
        time_base=index.time_base,
        output=task.output,
        warnings=() if video.shortfall is None else (video.shortfall,),
    )
    return Outcome(entry, outputs, tiles)


def _put_in_place(task: Task, writer: Writer) -> dict[str, Identity]:
    assert task.saving is not None
    assert task.output is not None
    claim(task.saving.folder, task.output)
    return writer.finish()


def _decoded(
    task: Task, video: Video, indices: Sequence[int]
) -> tuple[dict[str, Identity], tuple[Tile, ...]]:
    """Decode each frame once, in the order of the video; return the files and tiles made of it."""
    tiles: dict[int, Tile] = {}
    with contextlib.ExitStack() as stack:
        writer: Writer | None = None
        if task.saving is not None and task.output is not None:
            staging = stack.enter_context(staged(task.saving.folder))
            make = PictureWriter if task.saving.has_pictures else StackWriter
            writer = make(task.saving, task.output, indices, staging)
        for picture in video.pictures(sorted(set(indices))):
            if writer is not None:
                writer.add(picture)
            if task.has_tiles:
                tiles[picture.ordinal] = tile(picture, video.index.time_base)
        outputs = {} if writer is None else _put_in_place(task, writer)
    return outputs, tuple(tiles[index] for index in indices if task.has_tiles)
