"""What a video is called: the name that its draws hang on, and where its frames go."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pttool.core.video.sequences import is_pattern
from pttool.errors import UsageError


@dataclass(frozen=True, slots=True)
class Source:
    """A video: the path to open, its relative posix path, and its path in a manifest.

    The two are the same for a video below the root; one elsewhere has its full path, in `name`
    without the leading slash.
    """

    path: Path
    name: str
    file: str


def sources(paths: Sequence[Path], root: Path | None = None) -> list[Source]:
    """Return the videos in their order, each once.

    `root` is by default the working folder, or, where a video lies elsewhere, the folder that all
    of them are in: a name says nothing of where a machine keeps its data. Raises UsageError for a
    root that is no folder.
    """
    if root is not None and not root.is_dir():
        raise UsageError(f"--root {root}: is no folder", "name the folder that the videos are in")
    base = _common_root(paths) if root is None else Path(os.path.abspath(root))
    named = [_source(path, base) for path in paths]
    return list({source.name: source for source in named}.values())


def output_names(sources: Sequence[Source], suffix: str = "") -> dict[str, str]:
    """Return where each video's frames go below the output folder: a relative stem and `suffix`.

    Videos that differ in nothing but the suffix keep theirs. Raises UsageError for those that
    would still go to the same place.
    """
    stems = {source.name: _stem(source) for source in sources}
    often = Counter(stems.values())
    names = {name: stem if often[stem] == 1 else name for name, stem in stems.items()}
    for stem, count in Counter(names.values()).items():
        if count > 1:
            both = " and ".join(name for name, to in names.items() if to == stem)
            raise UsageError(f"{both} would both be written to {stem}", "sample them apart")
    return {name: stem + suffix for name, stem in names.items()}


def _common_root(paths: Sequence[Path]) -> Path:
    here = Path.cwd()
    absolute = [Path(os.path.abspath(path)) for path in paths]
    if all(path.is_relative_to(here) for path in absolute):
        return here
    try:
        return Path(os.path.commonpath([path.parent for path in absolute]))
    except ValueError:  # on several drives
        return here


def _source(path: Path, base: Path) -> Source:
    absolute = Path(os.path.abspath(path))
    if absolute.is_relative_to(base):
        name = absolute.relative_to(base).as_posix()
        return Source(path, name, name)
    return Source(path, absolute.relative_to(absolute.anchor).as_posix(), absolute.as_posix())


def _stem(source: Source) -> str:
    """Return the relative path without its suffix; a pattern's is that of its folder."""
    if not source.path.exists() and is_pattern(source.path.name):
        return _folder_name(source.path.parent, str(PurePosixPath(source.name).parent))
    if source.path.is_dir():  # dots in the name of a folder begin no suffix
        return _folder_name(source.path, source.name)
    return str(PurePosixPath(source.name).with_suffix(""))


def _folder_name(path: Path, name: str) -> str:
    return name if name != "." else Path(os.path.abspath(path)).name
