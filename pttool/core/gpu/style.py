"""How GPUs are written for a shell."""

from enum import StrEnum


class Style(StrEnum):
    """UUIDs, indices by PCI bus, or a line that exports the UUIDs."""

    UUID = "uuid"
    INDEX = "index"
    EXPORT = "export"
