"""Which lines of the user's code the samples fell on while batches were made."""

import sysconfig
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from pttool.core.profile.recording import Frame, Process, Stack
from pttool.core.profile.types import HotLine

MOST_LINES = 20
# The function of torch that calls the dataset and the collate function.
FETCHER = ("torch", "utils", "data", "_utils", "fetch.py")
LIBRARY_FOLDERS = {"site-packages", "dist-packages"}


def hot_lines(processes: Iterable[Process]) -> tuple[HotLine, ...]:
    """Return the lines below the loader's fetch, most often seen first.

    Of each stack, the innermost frame of the user's code counts: the line that he can change. A
    dataset that is a library's has none; then it is the innermost frame of all.
    """
    seen: Counter[Frame] = Counter()
    for process in processes:
        for stack in process.samples.stacks:
            made = _below_fetch(stack)
            if made:
                seen[innermost_of_user(made) or made[-1]] += stack.count
    whole = sum(seen.values())
    return tuple(
        HotLine(frame.file, frame.line, frame.function, count / whole)
        for frame, count in seen.most_common(MOST_LINES)
    )


def innermost_of_user(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame that is neither Python's nor an installed package's."""
    return next((frame for frame in reversed(frames) if not is_library(frame.file)), None)


def is_library(file: str) -> bool:
    """Whether a file of code is Python's or an installed package's."""
    if file.startswith("<"):  # compiled from text, as the importer is, or read from a pipe
        return file != "<stdin>"
    path = PurePath(file)
    return bool(LIBRARY_FOLDERS & set(path.parts)) or path.is_relative_to(_STDLIB)


def _below_fetch(stack: Stack) -> Sequence[Frame]:
    for index in reversed(range(len(stack.frames))):
        frame = stack.frames[index]
        is_fetch = frame.function.rpartition(".")[2] == "fetch"
        if is_fetch and PurePath(frame.file).parts[-len(FETCHER) :] == FETCHER:
            return stack.frames[index + 1 :]
    return ()


_STDLIB = sysconfig.get_paths()["stdlib"]
