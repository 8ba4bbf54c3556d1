"""A folder of images, or a pattern of their names, as a video: frame i is the i-th by number."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path

import av
from av.video.frame import VideoFrame

from pttool.core.natural_order import natural
from pttool.core.video.types import FrameIndex, Picture, Source, UnreadableFrameError
from pttool.core.video.upright import rgb_of
from pttool.errors import InputError

SUFFIXES = frozenset({
    ".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".dpx", ".exr",
    ".jp2",
})  # fmt: skip
# JPEG, PNG, BMP, WebP, TIFF, PNM, DPX, OpenEXR, JPEG 2000.
BEGINNINGS = (
    b"\xff\xd8", b"\x89PNG", b"BM", b"RIFF", b"II*\0", b"MM\0*", b"P", b"SDPX", b"XPDS",
    b"v/1\x01", b"\0\0\0\x0cjP", b"\xffO\xffQ",
)  # fmt: skip
NUMBER = re.compile(r"%(?:0(\d+))?d")
# What ffmpeg assumes of image sequences too.
ASSUMED_FPS = Fraction(25)


def images_of(path: Path) -> tuple[Path, ...] | None:
    """Return the images of a folder or pattern in natural order, or None for any other path.

    A pattern has %d or %05d in its last part, as ffmpeg's do, or shell wildcards; the name of a
    file that exists is none. Raises InputError where there are no images.
    """
    try:
        if path.is_dir():
            found = [image for image in path.iterdir() if image.suffix.lower() in SUFFIXES]
            said = "is a folder without images"
        elif not path.exists() and path.parent.is_dir() and (fits := _pattern(path.name)):
            found = [image for image in path.parent.iterdir() if fits(image.name)]
            said = "no file fits this pattern"
        else:
            return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check the path") from error
    images = sorted((image for image in found if image.is_file()), key=_order)
    if not images:
        raise InputError(f"{path}: {said}", "name a video, a folder of images, or img_%05d.jpg")
    return tuple(images)


def is_pattern(name: str) -> bool:
    """Whether a name, if no file has it, stands for images."""
    return _pattern(name) is not None


def _pattern(name: str) -> Callable[[str], object] | None:
    """Return what tells whether a name fits a pattern, or None if this is none."""
    number = NUMBER.search(name)
    if number:
        before, after = re.escape(name[: number.start()]), re.escape(name[number.end() :])
        return re.compile(f"{before}[0-9]{{{number[1] or 1},}}{after}").fullmatch
    if set(name) & set("*?["):
        return lambda candidate: fnmatchcase(candidate, name)
    return None


def _order(image: Path) -> list[tuple[int, str]]:
    return natural(image.name)


class ImageSequence:
    """Images of files, in their order. Each is one frame; no clock goes with them."""

    shortfall: str | None = None
    damage: str | None = None

    def __init__(self, path: Path, images: Sequence[Path], *, rotate: bool = True) -> None:
        self.path = path
        self.images = tuple(images)
        self.index = _index(len(images), "packets")
        self._rotate = rotate
        if not all(map(_begins_as_an_image, self.images)):
            self.decoded_index()

    def first(self) -> tuple[str, VideoFrame]:
        """Return the first frame, and its codec. Raises InputError if none can be decoded."""
        return next((codec, frame) for _, codec, frame in self._readable())

    def pictures(self, ordinals: Sequence[int]) -> Iterator[Picture]:
        """Yield the images by their ordinals. Raises UnreadableFrameError for one that isn't."""
        for ordinal in ordinals:
            decoded = _decoded(self.images[ordinal])
            if decoded is None:
                message = f"{self.images[ordinal]}: can't be decoded as an image"
                raise UnreadableFrameError(message, ordinal)
            yield Picture(ordinal, ordinal, rgb_of(decoded[1], rotate=self._rotate))

    def decoded_index(self) -> FrameIndex:
        """Return the frames without the images that can't be decoded."""
        readable = tuple(image for image, _, _ in self._readable())
        if len(readable) < len(self.images):
            self.shortfall = f"{len(readable)} of {len(self.images)} images can be read"
        self.images = readable
        self.index = _index(len(readable), "decoded")
        return self.index

    def _readable(self) -> Iterator[tuple[Path, str, VideoFrame]]:
        is_empty = True
        for image in self.images:
            decoded = _decoded(image)
            if decoded is not None:
                is_empty = False
                yield image, *decoded
        if is_empty:
            raise InputError(
                f"{self.path}: none of its images can be decoded", "check the files in it"
            )


def _index(count: int, source: Source) -> FrameIndex:
    every = tuple(range(count))
    return FrameIndex(every, 1 / ASSUMED_FPS, every, source)


def _begins_as_an_image(image: Path) -> bool:
    try:
        with image.open("rb") as stream:
            return stream.read(8).startswith(BEGINNINGS)
    except OSError:
        return False


def _decoded(image: Path) -> tuple[str, VideoFrame] | None:
    """Return the codec and first frame of an image file, told by its content; None if none."""
    try:
        with av.open(io.BytesIO(image.read_bytes()), mode="r") as container:
            stream = container.streams.video[0]
            frame = next(container.decode(stream), None)
            return None if frame is None else (stream.codec.canonical_name, frame)
    except (av.FFmpegError, OSError, IndexError):  # an IndexError where there is no video stream
        return None
