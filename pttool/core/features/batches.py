"""Batches of pictures, decoded ahead of the model; what can't be read keeps its slot, as zeros."""

import contextlib
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

import torch
from PIL import Image
from torch import Tensor

from pttool.core.features.images import Alpha, read_image
from pttool.core.features.inputs import Input, Inputs
from pttool.core.features.preprocessing import Preprocessing
from pttool.core.video.decode import open_video
from pttool.core.video.tsn import Sampling, frame_indices
from pttool.core.video.types import UnreadableFrameError, Video
from pttool.errors import InputError, UnavailableError

Slots = list[tuple[int, Input]]
UNREADABLE = (InputError, UnavailableError, OSError)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files become pictures; `frames` is how many are taken of each video."""

    exif: bool = True
    alpha: Alpha = "white"
    frames: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A slot of a batch that has no picture, and why; the reason doesn't name the file."""

    slot: int
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The tensor (B, C, H, W) of the inputs that are numbered `numbers`; failed rows are zeros."""

    numbers: range
    pictures: Tensor
    failures: tuple[Failure, ...]

    @property
    def kept(self) -> list[int]:
        """The slots that have a picture."""
        failed = {failure.slot for failure in self.failures}
        return [slot for slot in range(len(self.numbers)) if slot not in failed]


def batches(
    inputs: Inputs,
    parts: Iterable[range],
    preprocessing: Preprocessing,
    reading: Reading,
    *,
    batch_size: int,
    decoders: int,
) -> Generator[Batch, None, None]:
    """Yield the inputs of each part, a range of their numbers, cut into batches, in order.

    Which inputs share a batch, and in which slots, depends on nothing but these arguments.
    `decoders` threads read ahead, by one batch and as many more as hold a picture for each.
    The shape of `preprocessing` must be known, as `of_one_shape` makes it.
    """
    ahead = 1 + -(-decoders // batch_size)
    decoded: deque[_Decoding] = deque()
    # Each decoder's own: the many threads of the model's operations would be in the way.
    pool = ThreadPoolExecutor(decoders, initializer=torch.set_num_threads, initargs=(1,))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")  # of what it copes with
        try:
            for numbers in _cut(parts, batch_size):
                decoded.append(_Decoding(pool, inputs, numbers, preprocessing, reading))
                if len(decoded) > ahead:
                    yield decoded.popleft().result()
            while decoded:
                yield decoded.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def of_one_shape(preprocessing: Preprocessing, inputs: Inputs, reading: Reading) -> Preprocessing:
    """Return a preprocessing whose tensors all have the shape of the first that can be read.

    Raises InputError if none can.
    """
    if preprocessing.shape is not None:
        return preprocessing
    for one in inputs:
        with contextlib.suppress(*UNREADABLE):
            for _, picture in _pictures([(0, one)], reading):
                return preprocessing.pinned(picture)
    raise InputError("none of the pictures can be read", f"the first is {inputs[0].path}")


def _cut(parts: Iterable[range], batch_size: int) -> Iterator[range]:
    for part in parts:
        for start in range(0, len(part), batch_size):
            yield part[start : start + batch_size]


class _Decoding:
    """A batch that threads are at work on, each with the rows of one file."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        inputs: Inputs,
        numbers: range,
        preprocessing: Preprocessing,
        reading: Reading,
    ) -> None:
        self._numbers = numbers
        with torch.inference_mode(False):  # other threads can't write to inference tensors
            self._pictures = torch.zeros(len(numbers), *(preprocessing.shape or ()))
        slots = enumerate(inputs[number] for number in numbers)
        self._failures: list[Future[list[Failure]]] = [
            pool.submit(_fill, self._pictures, list(of_one_file), preprocessing, reading)
            for _, of_one_file in groupby(slots, key=lambda slot: slot[1].path)
        ]

    def result(self) -> Batch:
        """Wait for the threads, and return the batch."""
        failures = tuple(failure for rows in self._failures for failure in rows.result())
        return Batch(self._numbers, self._pictures, failures)


def _fill(
    rows: Tensor, slots: Slots, preprocessing: Preprocessing, reading: Reading
) -> list[Failure]:
    """Write the pictures of one file to their rows; return the slots that have none."""
    try:
        for slot, picture in _pictures(slots, reading):
            rows[slot] = preprocessing(picture)
    except UNREADABLE as error:
        for slot, _ in slots:
            rows[slot] = 0
        said = error.strerror if isinstance(error, OSError) else None
        reason = (said or str(error)).removeprefix(f"{slots[0][1].path}: ")
        return [Failure(slot, reason) for slot, _ in slots]
    return []


def _pictures(slots: Slots, reading: Reading) -> Iterator[tuple[int, Image.Image]]:
    """Yield the slots of one file with their pictures; those of a video may come again, mended."""
    slot, one = slots[0]
    if one.frame is None:
        yield slot, read_image(one.path, exif=reading.exif, alpha=reading.alpha)
        return
    with open_video(one.path, rotate=reading.exif) as video:
        try:
            yield from _sampled(video, slots, reading)
        except UnreadableFrameError:
            video.decoded_index()
            yield from _sampled(video, slots, reading)


def _sampled(video: Video, slots: Slots, reading: Reading) -> Iterator[tuple[int, Image.Image]]:
    """Yield the frames that `video sample-tsn` takes. All are decoded, whichever are in `slots`.

    Which they are hangs on whether each can be, and a video may be in two batches.
    """
    frames = len(video.index)
    if video.damage is not None:
        raise InputError(video.damage, "mend it first: ffmpeg -i FILE out.mp4")
    indices = frame_indices(frames, Sampling(segments=reading.frames or 1))
    for picture in video.pictures(sorted(set(indices))):
        for slot, one in slots:
            if one.frame is not None and indices[one.frame] == picture.ordinal:
                yield slot, Image.fromarray(picture.rgb)
