"""What a video is made of: the index of its frames, and pictures of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pttool.errors import InputError

# packets: told by the packets; decoded: by decoding all of them; assumed: by the header alone.
Source = Literal["packets", "decoded", "assumed"]
Rgb = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FrameIndex:
    """The frames of a video: frame i is the i-th picture of a full sequential decode.

    `pts` are the frames' timestamps in units of `time_base` (seconds), None where the file has
    none; `keyframes` are the ordinals of the frames that the file marks as such.
    """

    pts: tuple[int | None, ...]
    time_base: Fraction
    keyframes: tuple[int, ...]
    source: Source

    def __len__(self) -> int:
        return len(self.pts)


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of one frame: `rgb` is (H, W, 3), upright unless that was not wanted."""

    ordinal: int
    pts: int | None
    rgb: Rgb


class Video(Protocol):
    """An open video: a file, or a folder of images."""

    @property
    def index(self) -> FrameIndex:
        """Its frames, told by the packets where those can be trusted, else by a full decode."""
        ...

    @property
    def shortfall(self) -> str | None:
        """How many of the frames that the file claims can be read, if not all, as far as known."""
        ...

    @property
    def damage(self) -> str | None:
        """What is damaged before the end of the file, as far as it is known."""
        ...

    def pictures(self, ordinals: Sequence[int]) -> Iterator[Picture]:
        """Yield the pictures of frames, which never decrease; a repeated one comes again.

        Raises UnreadableFrameError where the index turns out not to be what decoding gives.
        """
        ...

    def decoded_index(self) -> FrameIndex:
        """Return the frames that a full decode gives, by which `pictures` goes from then on."""
        ...


class UnreadableFrameError(InputError):
    """A frame that the packets claim can't be decoded, or damage shows where it is looked for.

    Which frames there are is told by `Video.decoded_index`.
    """

    def __init__(self, message: str, ordinal: int) -> None:
        super().__init__(message, "a full decode tells which frames can be read")
        self.ordinal = ordinal
