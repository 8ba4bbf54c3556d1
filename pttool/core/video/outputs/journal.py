"""What an output folder is known to hold, so that an interrupted sampling can go on."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pttool.core.video.outputs.manifest import Entry
from pttool.core.video.outputs.refused import writing

NAME = ".pttool-sampled.jsonl"
Identity = list[int]  # size in bytes and time of change in ns, as JSON has it


@dataclass(frozen=True, slots=True)
class Kept:
    """One video's frames: how they were made, out of which file, and what each output is."""

    made_with: dict[str, Any]
    source: Identity
    outputs: dict[str, Identity]
    entry: Entry


def read_journal(folder: Path) -> dict[str, Kept]:
    """Return the last word on each video; a line that was cut short, or is foreign, is no word."""
    kept: dict[str, Kept] = {}
    for word in _words(folder):
        with contextlib.suppress(TypeError, KeyError):
            kept[word["name"]] = Kept(**{key: word[key] for key in Kept.__slots__})
    return kept


def claim(folder: Path, output: str) -> None:
    """Append that `output` is about to be put in place: what lies there from then on is ours."""
    _append(folder, {"claims": output})


def claimed(folder: Path) -> set[str]:
    """Return every output that was put, or begun to be put, into a folder."""
    return {word["claims"] for word in _words(folder) if isinstance(word.get("claims"), str)}


def remember(folder: Path, name: str, kept: Kept) -> None:
    """Append a line; the frames are in place by now."""
    word = {
        "name": name,
        "made_with": kept.made_with,
        "source": kept.source,
        "outputs": kept.outputs,
        "entry": kept.entry,
    }
    _append(folder, word)


def _append(folder: Path, word: dict[str, Any]) -> None:
    # It begins with a new line: what a kill has left of the line before ends there.
    line = ("\n" + json.dumps(word) + "\n").encode("ascii")
    with writing(folder), (folder / NAME).open("ab", buffering=0) as stream:
        stream.write(line)


def _words(folder: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = (folder / NAME).read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError):
            word = json.loads(line)
            if isinstance(word, dict):
                yield word


def is_complete(folder: Path, kept: Kept, made_with: dict[str, Any], source: Path) -> bool:
    """Whether a video's frames are all there, made this way, from the file as it is now."""
    if kept.made_with != made_with or kept.source != identity(source):
        return False
    return all(identity(folder / name) == what for name, what in kept.outputs.items())


def identity(path: Path) -> Identity:
    """Return what changes with a file; zeros where there is none, as of a pattern."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return [0, 0]
    return [found.st_size, found.st_mtime_ns]
