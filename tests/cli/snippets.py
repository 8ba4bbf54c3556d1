"""Run the code of recipes, each in a process of its own, without waiting for torch each time.

Reads one JSON object, {number: code}, and writes another, {number: what went wrong}. Each code runs
in a fork of this process, in the working folder, and then its check, where there is one.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torchvision.models  # noqa: F401  # what most of them import

from tests.cli.snippet_checks import CHECKS


def main() -> None:
    """Run all that standard input holds."""
    failures = {}
    for number, code in json.load(sys.stdin).items():
        with TemporaryDirectory() as folder:
            for file in Path.cwd().iterdir():
                (Path(folder) / file.name).symlink_to(file)
            said = Path(folder) / "said.txt"
            child = os.fork()
            if child == 0:
                _become(int(number), code, said)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
                failures[number] = said.read_text()
    json.dump(failures, sys.stdout)


def _become(number: int, code: str, said: Path) -> None:
    status = 1
    try:
        os.chdir(said.parent)
        descriptor = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        found: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(code, f"recipe {number}", "exec"), found)
        if number in CHECKS:
            CHECKS[number](found)
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
