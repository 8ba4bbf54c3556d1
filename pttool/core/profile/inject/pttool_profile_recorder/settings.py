"""What the parent asked for, handed on through the environment, or a command line in a child."""

import os

PREFIX = "PTTOOL_PROFILE_"


class Settings:
    """What to record, and the folder to write to; as pttool.core.profile.launch.Settings."""

    NAMES = (
        "FOLDER", "HZ", "SKIP_STEPS", "WINDOW_STEPS", "WINDOWS", "SHAPES", "MEMORY", "MODULES",
    )  # fmt: skip

    def __init__(self, *values: str) -> None:
        """Take the values as texts, in the order of NAMES."""
        self.values = values
        folder, hz, skip_steps, window_steps, windows, shapes, memory, modules = values
        self.folder = folder
        self.hz = float(hz)
        self.skip_steps = int(skip_steps)
        self.window_steps = int(window_steps)
        self.windows = int(windows)
        self.shapes = shapes == "1"
        self.memory = memory == "1"
        self.modules = modules == "1"

    @classmethod
    def taken_from_environment(cls) -> "Settings | None":
        """Read the settings and put the environment back as the user's shell had it."""
        if PREFIX + "FOLDER" not in os.environ:
            return None
        values = [os.environ.pop(PREFIX + name) for name in cls.NAMES]
        given = os.environ.pop(PREFIX + "PYTHONPATH", None)
        if given is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = given
        return cls(*values)
