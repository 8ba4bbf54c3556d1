"""The names that people know frames and modules by."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from pttool.core.profile.hot_lines import LIBRARY_FOLDERS
from pttool.core.profile.recording import Frame, Module, Process
from pttool.core.profile.types import ModuleTime

IMPORTER = "<frozen importlib."


def labelled_stacks(main: Process, workers: Sequence[Process]) -> Counter[tuple[str, ...]]:
    """Return the samples of each stack, below its phase; a worker's below `worker`.

    The frames of the importer, five for each import, only stand between those that matter.
    """
    stacks: Counter[tuple[str, ...]] = Counter()
    for process in (main, *workers):
        for stack in process.samples.stacks:
            phase = stack.phase if process is main else "worker"
            frames = (each for each in stack.frames if not each.file.startswith(IMPORTER))
            stacks[(phase, *map(_frame, frames))] += stack.count
    return stacks


def module_times(modules: Sequence[Module]) -> tuple[ModuleTime, ...]:
    """Return the modules by qualified name, the slowest first.

    Where a script calls several roots, as a generator and a discriminator, each name begins with
    its root's type.
    """
    roots = {module.root for module in modules}
    times = [
        ModuleTime(
            module.name if len(roots) == 1 else f"{module.root}.{module.name}".rstrip("."),
            module.type,
            1000 * module.self_s,
            module.calls,
        )
        for module in modules
    ]
    return tuple(sorted(times, key=lambda each: -each.self_ms))


def short_place(file: str, line: int) -> str:
    """Return a line of an installed package from the package on, else by the file's name alone."""
    parts = PurePath(file).parts
    for index in reversed(range(len(parts))):
        if parts[index] in LIBRARY_FOLDERS:
            return f"{'/'.join(parts[index + 1 :])}:{line}"
    return f"{parts[-1] if parts else file}:{line}"


def _frame(frame: Frame) -> str:
    return f"{frame.function} ({short_place(frame.file, frame.line)})"
