"""The recorder: what it writes is described in pttool.core.profile.recording.

It imports nothing but what Python itself has loaded by then, until the script has imported torch,
which loads the rest; its own modules are taken out of sys.modules again. It puts its hooks into
torch's functions (`inlining`), so that the script's tracebacks, warnings and stack depths are
those of plain Python.
"""

import sys

_LOADED_BEFORE = set(sys.modules) - {__name__}

from .recorder import Recorder  # noqa: E402
from .settings import Settings  # noqa: E402


def start() -> None:
    """Record this process, whose environment says how; called by sitecustomize."""
    settings = Settings.taken_from_environment()
    if settings is not None:
        Recorder(settings).start_main()
    _hide()


def start_child(*values: str) -> None:
    """Record in a process that multiprocessing started: what its DataLoader workers do."""
    Recorder(Settings(*values)).start_child()
    _hide()


def _hide() -> None:
    for name in set(sys.modules) - _LOADED_BEFORE:
        del sys.modules[name]
