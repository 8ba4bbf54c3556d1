"""Run many pttool commands fast: import what takes long once, then fork a process for each command.

Every command still is a process of its own, with real descriptors and a real exit code. Only
start-up is shared, so tests of start-up and of environment variables run the program itself.
Reads one JSON request a line, {"args", "cwd", "stdout", "stderr", "env"}, and answers with the exit
code; "env" is added to the environment, and may be left out.
"""

import atexit
import json
import os
import sys
from typing import Any

from pttool.__main__ import main


def serve() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _become(request: dict[str, Any]) -> None:
    os.chdir(request["cwd"])
    os.environ.update(request.get("env", {}))
    for descriptor, path in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(path, flags), descriptor)
    sys.argv = ["pttool", *request["args"]]
    try:
        main()
    except SystemExit as leaving:
        atexit._run_exitfuncs()
        os._exit(leaving.code if isinstance(leaving.code, int) else 1)  # spares torch's clean-up


if __name__ == "__main__":
    import torchvision.models  # noqa: F401

    serve()
