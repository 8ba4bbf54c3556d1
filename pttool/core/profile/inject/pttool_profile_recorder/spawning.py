"""Children that multiprocessing starts anew, with spawn or a fork server, are recorded too."""

import os

from .inlining import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = __package__
# What multiprocessing has them run; its third kind, the resource tracker, has nothing to record.
RECORDED = ("from multiprocessing.spawn import", "from multiprocessing.forkserver import")


class SpawnHook(Hook):
    """The hook of multiprocessing.util.spawnv_passfds: it adds the recorder to the command.

    The environment, which every other child inherits, stays as the user's.
    """

    def __init__(self, settings: "Settings") -> None:
        values = ", ".join(repr(value) for value in settings.values)
        self._start = (
            f"import sys; sys.path.insert(0, {FOLDER!r}); import {PACKAGE}; del sys.path[0]; "
            f"{PACKAGE}.start_child({values}); del {PACKAGE}, sys; "
        )

    def enter(self, arguments: "list[str | bytes]") -> None:
        """Change the command in place; it is a list made for this call."""
        for index, argument in enumerate(arguments):
            # The resource tracker's are bytes.
            if isinstance(argument, str) and argument.startswith(RECORDED):
                arguments[index] = self._start + argument
