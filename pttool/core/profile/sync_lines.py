"""Lines of the user's code that stop until the GPU has done all it was given."""

import linecache
import re
from collections import Counter
from collections.abc import Callable

from pttool.core.profile.hot_lines import is_library
from pttool.core.profile.recording import Frame, Process
from pttool.core.profile.types import STEP_PHASES, HotLine

# https://pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
SYNCHRONIZING = re.compile(
    r"\.(item|cpu|tolist|numpy|nonzero)\(\)|\.to\(\s*['\"]cpu|\bsynchronize\("
)


def sync_lines(
    process: Process, source_line: Callable[[str, int], str] = linecache.getline
) -> tuple[HotLine, ...]:
    """Return the lines that were seen waiting for a GPU, by their share of the steps' samples.

    Such a call is C code: its line is the innermost one of the stack. Without CUDA nothing waits.
    `source_line` returns the text of a line of a file, empty where it can't.
    """
    if process.torch is None or not process.torch.cuda:
        return ()
    seen: Counter[Frame] = Counter()
    whole = 0
    for stack in process.samples.stacks:
        if stack.phase not in STEP_PHASES:
            continue
        whole += stack.count
        line = stack.frames[-1] if stack.frames else None
        if line is not None and not is_library(line.file) and _waits(line, source_line):
            seen[line] += stack.count
    return tuple(
        HotLine(line.file, line.line, line.function, count / whole)
        for line, count in seen.most_common()
    )


def _waits(frame: Frame, source_line: Callable[[str, int], str]) -> bool:
    return SYNCHRONIZING.search(source_line(frame.file, frame.line)) is not None
