"""A picture that says which frame it is: its number stands in it as 16 black and white cells.

Each cell stands above its opposite, so that a blurred, dim or shifted picture is read right or not
at all. A turned picture isn't read, and a mirrored one is read as another number.
"""

import numpy as np
from numpy.typing import NDArray

BITS = 16
ROW = 16
CONTRAST = 60
Rgb = NDArray[np.uint8]  # (H, W, 3)


def draw(number: int, width: int, height: int) -> Rgb:
    """Return the picture of frame `number`: the barcode over a background that moves with it."""
    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    background = (x + 2 * number, y + number, (x + y) // 2 + 3 * number)
    rgb = np.stack(np.broadcast_arrays(*background), axis=2).astype(np.uint8)
    rgb[: 2 * ROW] = 128
    cell = width // BITS
    for bit in range(BITS):
        columns = slice(bit * cell, (bit + 1) * cell)
        is_set = number >> bit & 1
        rgb[:ROW, columns] = 235 if is_set else 16
        rgb[ROW : 2 * ROW, columns] = 16 if is_set else 235
    return rgb


def read(rgb: Rgb) -> int | None:
    """Return the number of the frame that a picture shows, None where it can't be read."""
    grey = rgb.mean(axis=2)
    cell, edge = grey.shape[1] // BITS, ROW // 4
    number = 0
    for bit in range(BITS):
        columns = slice(bit * cell + cell // 4, (bit + 1) * cell - cell // 4)
        upper = grey[edge : ROW - edge, columns].mean()
        lower = grey[ROW + edge : 2 * ROW - edge, columns].mean()
        if abs(upper - lower) < CONTRAST:
            return None
        number |= int(upper > lower) << bit
    return number
