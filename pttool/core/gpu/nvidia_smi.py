"""Reset GPUs through nvidia-smi: NVML has no call for it."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from pttool.errors import UnavailableError

# nvidia-smi has told of a reset that it didn't do with an exit code of 0.
_REFUSED = re.compile(
    r"could ?n[o']t|can ?n[o']t|unable|not supported|not permitted|permission|in use|fail|error",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ResetAnswer:
    """What nvidia-smi said, on one line, and whether the GPUs were reset."""

    text: str
    is_reset: bool


def reset_command(gpus: Sequence[str]) -> list[str]:
    """Return the command that resets GPUs, each by its PCI bus, UUID or index.

    Without -i it would reset every GPU. Raises UnavailableError where nvidia-smi isn't on the PATH.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        raise UnavailableError(
            "nvidia-smi is not on the PATH: NVML has no call that resets a GPU",
            "install the driver's utilities (nvidia-utils)",
        )
    return [program, "--gpu-reset", "-i", ",".join(gpus)]


def run_reset(command: Sequence[str]) -> ResetAnswer:
    """Reset GPUs with a command of `reset_command`; return what nvidia-smi says of it."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )
    text = " ".join(done.stdout.split())
    is_reset = done.returncode == 0 and _REFUSED.search(text) is None
    return ResetAnswer(text or f"exit code {done.returncode}", is_reset)
