"""Run scripts with plain Python and with the recorder inside, as processes."""

import subprocess
import sys
from pathlib import Path

from pttool.core.profile.launch import Ended, Settings

# What stands between a shell and the script: it writes what it knows of the end beside the record.
DRIVER = """
import pathlib, sys
from pttool.core.profile.launch import Settings, launch
folder, settings, *arguments = sys.argv[1:]
ended = launch(arguments, eval(settings), pathlib.Path(folder))
pathlib.Path(folder, "ended").write_text(repr(ended))
sys.exit(ended.exit_code)
"""


def recorded(arguments: list[str], folder: Path, settings: Settings | None = None) -> list[str]:
    """Return the command line that runs `python ARGUMENTS` and records into a folder."""
    folder.mkdir()
    driver = [sys.executable, "-E", "-c", DRIVER, str(folder)]
    return [*driver, repr(settings or Settings()), *arguments]


def ended(folder: Path) -> Ended:
    """Return how the script ended that was recorded into a folder."""
    known: Ended = eval((folder / "ended").read_text())
    return known


def run(
    command: list[str], cwd: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command line in a folder, and return its exit code and all that it wrote."""
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, timeout=120)
