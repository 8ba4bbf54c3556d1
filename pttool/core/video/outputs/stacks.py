"""Write the frames of one video as one array: uint8, RGB, (T, H, W, C), in the order sampled."""

import io
import shutil
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pttool.core.video.outputs.journal import Identity
from pttool.core.video.outputs.pixels import with_short_side
from pttool.core.video.outputs.refused import writing
from pttool.core.video.outputs.saving import Saving
from pttool.core.video.outputs.staging import PART, put_in_place
from pttool.core.video.types import Picture
from pttool.errors import InputError

OLDEST = (1980, 1, 1, 0, 0, 0)  # of a zip: the same frames give the same bytes


class StackWriter:
    """Writes the file `output`, a frame at a time, so that memory holds one frame.

    An npz has the arrays `frames` and `indices`; npy and pt hold the frames alone.
    """

    def __init__(self, saving: Saving, output: str, indices: Sequence[int], staging: Path) -> None:
        self._saving, self._output, self._indices = saving, output, indices
        self._target = saving.folder / output
        self._positions: dict[int, list[int]] = defaultdict(list)
        for position, index in enumerate(indices):
            self._positions[index].append(position)
        self._staging = staging
        self._array = staging / "frames"
        self._shape: tuple[int, ...] = ()
        self._start = 0

    def add(self, picture: Picture) -> None:
        """Write one frame at each of its places; raises InputError for one of another size."""
        rgb = np.ascontiguousarray(with_short_side(picture.rgb, self._saving.short_side))
        if not self._shape:
            self._begin(rgb.shape)
        if rgb.shape != self._shape:
            (height, width), (first_height, first_width) = rgb.shape[:2], self._shape[:2]
            raise InputError(
                f"frame {picture.ordinal} is {width}x{height}, the first {first_width}x"
                f"{first_height}: they can't be stacked",
                "--format jpg or png keeps each as it is",
            )
        with writing(self._target), self._array.open("r+b") as stream:
            for position in self._positions[picture.ordinal]:
                stream.seek(self._start + position * rgb.nbytes)
                stream.write(rgb.data)

    def finish(self) -> dict[str, Identity]:
        """Give the array the form asked for, and its name."""
        done = self._staging / f"{self._target.name}{PART}"
        with writing(self._target):
            match self._saving.format:
                case "npz":
                    _write_npz(self._array, self._indices, done)
                case "pt":
                    _write_pt(self._array, done)
                case _:
                    self._array.rename(done)
        placed = put_in_place(self._staging, self._target.parent, ())
        return {self._output: placed[self._target.name]}

    def _begin(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        header = {
            "descr": "|u1",
            "fortran_order": False,
            "shape": (len(self._indices), *shape),
        }
        with writing(self._target), self._array.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            self._start = stream.tell()


def _write_npz(array: Path, indices: Sequence[int], target: Path) -> None:
    held = io.BytesIO()
    np.save(held, np.array(indices, dtype=np.int64))
    held.seek(0)
    with zipfile.ZipFile(target, "w") as archive, array.open("rb") as frames:
        _add(archive, "frames.npy", frames)
        _add(archive, "indices.npy", held)


def _add(archive: zipfile.ZipFile, name: str, source: BinaryIO) -> None:
    with archive.open(zipfile.ZipInfo(name, OLDEST), "w", force_zip64=True) as stream:
        shutil.copyfileobj(source, stream)


def _write_pt(array: Path, target: Path) -> None:
    import torch  # loads for seconds: only where a file of it is written

    torch.save(torch.from_numpy(np.load(array, mmap_mode="c")), target)
