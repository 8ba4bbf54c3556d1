"""Save the frames of one video: as pictures in a folder, or as one array."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pttool.core.video.outputs.journal import Identity
from pttool.core.video.outputs.pixels import encoded, with_short_side
from pttool.core.video.outputs.refused import writing
from pttool.core.video.outputs.staging import PART, put_in_place
from pttool.core.video.types import Picture

Format = Literal["jpg", "png", "npy", "npz", "pt"]
PICTURES = ("jpg", "png")
PICTURE_NAME = re.compile(r"img_\d{5,}\.(jpg|png)")


@dataclass(frozen=True, slots=True)
class Saving:
    """How frames are saved below `folder`.

    `quality` is JPEG's; `short_side` in pixels, None for the video's own size. Pictures are
    numbered in the order they were sampled, from 1, or by their frame's index, from 0.
    """

    folder: Path
    format: Format = "jpg"
    quality: int = 95
    short_side: int | None = None
    numbered_by: Literal["order", "index"] = "order"

    @property
    def has_pictures(self) -> bool:
        """Whether a folder of pictures is written, not one array."""
        return self.format in PICTURES

    @property
    def suffix(self) -> str:
        """What is put behind a video's relative stem."""
        return "" if self.has_pictures else f".{self.format}"


class Writer(Protocol):
    """Takes pictures in the order of the video, and in the end gives the files their names."""

    def add(self, picture: Picture) -> None: ...

    def finish(self) -> dict[str, Identity]:
        """Return what each file is by its path below the output folder."""


class PictureWriter:
    """Writes `img_00001.jpg …` into the folder `output`."""

    def __init__(self, saving: Saving, output: str, indices: Sequence[int], staging: Path) -> None:
        self._saving, self._output, self._staging = saving, output, staging
        self._names: dict[int, set[str]] = defaultdict(set)
        for position, index in enumerate(indices, start=1):
            number = position if saving.numbered_by == "order" else index
            self._names[index].add(f"img_{number:05d}.{saving.format}")

    def add(self, picture: Picture) -> None:
        """Write one picture, under each of its names."""
        rgb = with_short_side(picture.rgb, self._saving.short_side)
        content = encoded(rgb, f".{self._saving.format}", self._saving.quality)
        with writing(self._saving.folder):
            for name in self._names[picture.ordinal]:
                (self._staging / f"{name}{PART}").write_bytes(content)

    def finish(self) -> dict[str, Identity]:
        """Put the pictures into their folder, from which those of an earlier sampling go."""
        target = self._saving.folder / self._output
        placed = put_in_place(self._staging, target, pictures_in(target))
        return {f"{self._output}/{name}": what for name, what in placed.items()}


def pictures_in(folder: Path) -> list[Path]:
    """Return the pictures in a folder that are named as PictureWriter names them."""
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if PICTURE_NAME.fullmatch(path.name)]
