"""What `pttool env --check` may check."""

from enum import StrEnum


class Check(StrEnum):
    """The check; the names of the settings it looks at begin with its value."""

    GPU = "gpu"
    DETERMINISTIC = "deterministic"
