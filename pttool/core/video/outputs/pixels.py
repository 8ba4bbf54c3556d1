"""Resize pictures, and encode them."""

import numpy as np

from pttool.core.video.opencv import load_cv2
from pttool.core.video.types import Rgb
from pttool.errors import InputError

LONGEST_JPEG = 65500  # JPEG_MAX_DIMENSION of libjpeg's jmorecfg.h


def with_short_side(rgb: Rgb, length: int | None) -> Rgb:
    """Return a picture (H, W, 3) whose shorter side has `length` pixels, in its own proportions.

    None leaves it as it is.
    """
    height, width = rgb.shape[:2]
    if length is None or min(height, width) == length:
        return rgb
    scale = length / min(height, width)
    return resized(rgb, max(length, round(width * scale)), max(length, round(height * scale)))


def resized(rgb: Rgb, width: int, height: int) -> Rgb:
    """Return a picture of this size: averaged when it shrinks, else interpolated linearly."""
    cv2 = load_cv2()
    shrinks = height < rgb.shape[0] or width < rgb.shape[1]
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    smaller: Rgb = cv2.resize(rgb, (width, height), interpolation=how)
    return smaller


def encoded(rgb: Rgb, suffix: str, quality: int = 95) -> bytes:
    """Return a picture (H, W, 3) as the bytes of a file; `suffix` is .jpg or .png.

    Raises InputError for one that is too large for it.
    """
    cv2 = load_cv2()
    height, width = rgb.shape[:2]
    if suffix == ".jpg" and max(height, width) > LONGEST_JPEG:
        raise InputError(
            f"a picture of {width}x{height} pixels is too large for JPEG",
            f"it holds {LONGEST_JPEG} a side: write .png, or make it smaller",
        )
    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if suffix == ".jpg" else []
    _, content = cv2.imencode(
        suffix, cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2BGR), options
    )
    return bytes(content)
