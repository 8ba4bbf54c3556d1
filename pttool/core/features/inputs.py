"""The pictures to go through, in an order and under names that are the same on every machine."""

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from pttool.core.natural_order import natural
from pttool.core.printable import printable
from pttool.errors import InputError, UnavailableError, UsageError

PICTURES = frozenset({
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".bmp", ".dib", ".webp", ".tif",
    ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".avif", ".ico", ".qoi",
})  # fmt: skip
VIDEOS = frozenset({
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".wmv", ".flv", ".mpg", ".mpeg", ".ts",
    ".mts", ".m2ts", ".3gp", ".ogv",
})  # fmt: skip
STILL = -1


@dataclass(frozen=True, slots=True)
class Input:
    """A picture: a file, or the frame of a video that stands for its segment `frame`, from 0.

    `id` is the path below the root, in posix form and on one line; a frame's is `clip.mp4#3`.
    """

    id: str
    path: Path
    frame: int | None = None


class Inputs(Sequence[Input]):
    """Inputs in their order, at some 100 bytes each; what was left out of folders is in `notes`."""

    def __init__(
        self, root: Path, names: Sequence[str], frames: "array[int]", notes: tuple[str, ...] = ()
    ) -> None:
        self.root = root
        self.notes = notes
        self._names = names
        self._frames = frames

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Input: ...
    @overload
    def __getitem__(self, index: slice) -> "Inputs": ...
    def __getitem__(self, index: int | slice) -> "Input | Inputs":
        """Return one input, or those of a slice."""
        if isinstance(index, slice):
            return Inputs(self.root, self._names[index], self._frames[index], self.notes)
        name, frame = self._names[index], self._frames[index]
        return Input(_id(name, frame), self.root / name, None if frame == STILL else frame)

    def ids(self) -> Iterator[str]:
        """Yield the ids, each unlike all others."""
        return map(_id, self._names, self._frames)


def list_inputs(
    paths: Sequence[Path], *, root: Path | None = None, frames: int | None = None
) -> Inputs:
    """Return the pictures in files and folders, in the order given, each once.

    A folder is gone through to the bottom, in natural order, links too; it gives what is named as
    a picture, but for hidden names, and with `frames` that many frames of each video. Ids are
    relative to `root`: by default the folder, if it is the only path; else the working folder, if
    all paths are relative to it; else the deepest folder above all of them.

    No file is opened, and one that isn't there is left to fail later, as one among many. Raises
    UsageError for a path outside the root, a video without `frames`, and ids that are not unique;
    InputError where no path is there, and for no picture; UnavailableError for a folder without
    permission.
    """
    if not any(map(os.path.lexists, paths)):
        raise InputError(f"{_some(paths)}: No such file or directory", "check the path")
    base = os.path.abspath(_root(paths) if root is None else root)
    walk = _Walk(takes_videos=frames is not None)
    found = [_below(base, file) for path in paths for file in walk.files(path)]
    if not found:
        hint = "; ".join(walk.notes()) or "name a folder that has some"
        raise InputError(f"{_some(paths)}: no pictures in it", hint)
    names = list(dict.fromkeys(found))
    notes = walk.notes()
    if len(names) < len(found):
        notes += (f"{len(found) - len(names)} files are named again: each is taken once",)
    inputs = Inputs(Path(base), *_segments(names, frames), notes)
    _check_unique(inputs)
    return inputs


def _some(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:3])) + (", ..." if len(paths) > 3 else "")


def _root(paths: Sequence[Path]) -> Path:
    if len(paths) == 1 and paths[0].is_dir():
        return paths[0]
    if not any(path.is_absolute() or ".." in path.parts for path in paths):
        return Path()
    folders = [os.path.abspath(path if path.is_dir() else path.parent) for path in paths]
    return Path(os.path.commonpath(folders))


class _Walk:
    """Goes through folders, and counts what it leaves out."""

    def __init__(self, *, takes_videos: bool) -> None:
        self._takes_videos = takes_videos
        self._videos = 0
        self._others = 0

    def files(self, path: Path) -> Iterator[str]:
        """Yield the absolute path of a file, whatever it is called, or the pictures in a folder."""
        if path.is_dir():
            yield from self._in_folder(os.path.abspath(path), ())
            return
        if _is_video(path.name) and not self._takes_videos:
            raise UsageError(f"{path}: is a video", "--frames K takes K frames of each")
        yield os.path.abspath(path)

    def _in_folder(self, folder: str, above: tuple[str, ...]) -> Iterator[str]:
        real = os.path.realpath(folder)
        if real in above:  # a link to a folder that it is in
            return
        for name, is_folder in _entries(folder):
            if is_folder:
                yield from self._in_folder(os.path.join(folder, name), (*above, real))
            elif _suffix(name) in PICTURES or (self._takes_videos and _is_video(name)):
                yield os.path.join(folder, name)
            elif _is_video(name):
                self._videos += 1
            else:
                self._others += 1

    def notes(self) -> tuple[str, ...]:
        """Return what was left out."""
        notes = []
        if self._videos:
            notes.append(f"{self._videos} videos are left out: --frames K takes K frames of each")
        if self._others:
            notes.append(f"{self._others} files are left out that aren't named as pictures")
        return tuple(notes)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Return the names in a folder in natural order, each with whether it is a folder."""
    try:
        with os.scandir(folder) as found:
            entries = [(entry.name, entry.is_dir()) for entry in found if entry.name[0] != "."]
    except PermissionError as error:
        raise UnavailableError(f"{folder}: no permission to list it", "ask its owner") from error
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", "check the folder") from error
    return sorted(entries, key=lambda entry: natural(entry[0]))


def _is_video(name: str) -> bool:
    return _suffix(name) in VIDEOS


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _below(base: str, file: str) -> str:
    name = file.removeprefix(base.rstrip("/") + "/")
    if name == file:
        raise UsageError(f"{file}: is not below {base}", "--root takes a folder above all files")
    return name


def _segments(names: Sequence[str], frames: int | None) -> tuple[list[str], "array[int]"]:
    """Return the names with each video's repeated for its frames, and the numbers of those."""
    repeated: list[str] = []
    numbers = array("i")
    for name in names:
        own = range(frames) if frames and _is_video(name) else (STILL,)
        repeated.extend(name for _ in own)
        numbers.extend(own)
    return repeated, numbers


def _id(name: str, frame: int) -> str:
    return printable(name if frame == STILL else f"{name}#{frame}")


def _check_unique(inputs: Inputs) -> None:
    """Raise UsageError for an id that two inputs would have, through the escapes in it."""
    if len(set(inputs.ids())) < len(inputs):
        [(repeated, _)] = Counter(inputs.ids()).most_common(1)
        raise UsageError(f"two inputs would have the id {repeated}", "rename one of them")
