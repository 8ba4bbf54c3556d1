"""Extract in a process that kills itself at its n-th rename, for each n; then go on with another.

Run as `python -m tests.core.features.killed_writes FOLDER`, in a process of its own: it forks. What
is left of run n and its resumption is in FOLDER/killed-n; an uninterrupted run is in FOLDER/whole.
"""

import os
import signal
import sys
from pathlib import Path

from pttool.core.features.types import Format
from tests.core.features.small import extracted, request

FIRST, LAST = 1, 100


def main(folder: Path) -> None:
    """Write FOLDER/whole and, until a run ends by itself, FOLDER/killed-1 and so on."""
    # Not forked: what it imports, the others needn't.
    extracted(request(folder), folder / "whole", joined=Format.NPY)
    for number in range(FIRST, LAST):
        out = folder / f"killed-{number}"
        code = _forked(folder, out, kill_at=number)
        if code == 0:
            return
        assert code == -signal.SIGKILL
        assert _forked(folder, out) == 0


def _forked(folder: Path, out: Path, kill_at: int | None = None) -> int:
    child = os.fork()
    if child == 0:
        _kill_at(kill_at)
        extracted(request(folder), out, joined=Format.NPY)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kill_at(number: int | None) -> None:
    replace, calls = os.replace, iter(range(1, LAST))

    def counted(source: Path, target: Path) -> None:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = counted  # type: ignore[assignment]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
