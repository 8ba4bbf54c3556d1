"""How a picture is turned to stand upright, by the display matrix that goes with a frame."""

import struct
from dataclasses import dataclass

import numpy as np
from av.sidedata.sidedata import SideData, SideDataContainer
from av.video.frame import VideoFrame

from pttool.core.video.types import Rgb


@dataclass(frozen=True, slots=True)
class Turn:
    """Rows and columns swapped, if at all, and then mirrored from left to right and top to bottom.

    `angle` is in degrees counterclockwise, 0 to 359.
    """

    is_transposed: bool = False
    is_mirrored: bool = False
    is_flipped: bool = False
    angle: int = 0

    def applied(self, picture: Rgb) -> Rgb:
        """Return a picture (H, W, 3) as it is to be shown, (W, H, 3) where transposed."""
        turned = picture.swapaxes(0, 1) if self.is_transposed else picture
        if self.is_mirrored:
            turned = turned[:, ::-1]
        if self.is_flipped:
            turned = turned[::-1]
        return np.ascontiguousarray(turned)


NONE = Turn()


def turn_of(frame: VideoFrame) -> Turn:
    """Return the turn that a frame's display matrix asks for; one by an odd angle isn't made.

    The matrix maps (x, y) to (a x + c y, b x + d y), y going down (ISO/IEC 14496-12, 6.2.2).
    """
    # frame.side_data is kept by the frame that it refers to: it would hold the frame's memory.
    matrix = SideDataContainer(frame).get("DISPLAYMATRIX")  # type: ignore[call-arg]
    if not isinstance(matrix, SideData):
        return NONE
    a, b, _, c, d = struct.unpack("=5i", bytes(matrix)[:20])
    angle = int(frame.rotation) % 360
    if a == d == 0 and b and c:
        return Turn(True, c < 0, b < 0, angle)
    if b == c == 0 and a and d:
        return Turn(False, a < 0, d < 0, angle)
    return Turn(angle=angle)


def rgb_of(frame: VideoFrame, *, rotate: bool) -> Rgb:
    """Return a frame's picture (H, W, 3), upright if `rotate`; pixels stay as wide as stored."""
    rgb: Rgb = frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
    return turn_of(frame).applied(rgb) if rotate else rgb
