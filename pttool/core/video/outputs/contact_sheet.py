"""Draw frames of videos on one picture, to look at: a grid for each, under its name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pttool.core.video.opencv import load_cv2
from pttool.core.video.outputs.pixels import resized
from pttool.core.video.types import Picture, Rgb

LONGER_SIDE = 240  # of a tile, in pixels
MOST_TILES = 2000  # of this size: 350 MB, and twice that while they are drawn
CAPTION = 18
GAP = 4
PAPER, INK = 255, 0
TEXT_SCALE = 0.42


@dataclass(frozen=True, slots=True)
class Tile:
    """A frame made small: its index, its timestamp, its time in seconds, (H, W, 3)."""

    frame: int
    pts: int | None
    time_s: float | None
    rgb: Rgb

    @property
    def caption(self) -> str:
        """What stands below it."""
        return f"{self.frame}" if self.time_s is None else f"{self.frame}  {self.time_s:.3f} s"


def tile(picture: Picture, time_base: Fraction, longer_side: int = LONGER_SIDE) -> Tile:
    """Return a picture made small."""
    height, width = picture.rgb.shape[:2]
    scale = longer_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    time_s = None if picture.pts is None else float(picture.pts * time_base)
    return Tile(picture.ordinal, picture.pts, time_s, resized(picture.rgb, *size))


def draw(bands: Sequence[tuple[str, Sequence[Tile]]], columns: int | None = None) -> Rgb:
    """Return one picture (H, W, 3) of the tiles of each video, by default about as wide as high.

    A row has no more columns than there are tiles.
    """
    across = columns or math.isqrt(sum(len(tiles) for _, tiles in bands) - 1) + 1
    drawn = [_band(title, tiles, min(across, len(tiles))) for title, tiles in bands]
    width = max(band.shape[1] for band in drawn)
    return np.concatenate([_padded(band, band.shape[0], width) for band in drawn])


def _band(title: str, tiles: Sequence[Tile], columns: int) -> Rgb:
    height = max(tile.rgb.shape[0] for tile in tiles) + GAP
    width = max(tile.rgb.shape[1] for tile in tiles) + GAP
    cells = [
        np.concatenate([_padded(tile.rgb, height, width), _text(tile.caption, width)])
        for tile in tiles
    ]
    blank = np.full_like(cells[0], PAPER)
    cells += [blank] * (-len(cells) % columns)
    rows = [
        np.concatenate(cells[at : at + columns], axis=1) for at in range(0, len(cells), columns)
    ]
    return np.concatenate([_text(title, rows[0].shape[1]), *rows])


def _padded(rgb: Rgb, height: int, width: int) -> Rgb:
    padded = np.full((height, width, 3), PAPER, dtype=np.uint8)
    padded[: rgb.shape[0], : rgb.shape[1]] = rgb
    return padded


def _text(text: str, width: int) -> Rgb:
    """Return a line of text; the font has ASCII alone."""
    cv2 = load_cv2()
    line = np.full((CAPTION, width, 3), PAPER, dtype=np.uint8)
    plain = text.encode("ascii", "replace").decode()
    font, colour = cv2.FONT_HERSHEY_SIMPLEX, (INK, INK, INK)
    cv2.putText(line, plain, (2, CAPTION - 5), font, TEXT_SCALE, colour, 1, cv2.LINE_AA)
    return line
