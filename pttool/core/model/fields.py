"""What can be shown and sorted by. Without torch, so that the options are checked at once."""

from enum import StrEnum

from pttool.core.report import Column
from pttool.errors import UsageError

FIELDS = (
    "name",
    "type",
    "depth",
    "calls",
    "input_shape",
    "output_shape",
    "params",
    "trainable_params",
    "macs",
    "kernel_size",
)
SUMMARY_COLUMNS = (
    Column("name", "Layer", "tree"),
    Column("type", "Type", optional=True),
    Column("input_shape", "Input", "shape", optional=True),
    Column("output_shape", "Output", "shape"),
    Column("kernel_size", "Kernel", "shape", optional=True),
    Column("calls", "Calls", "count", optional=True),
    Column("params", "Parameters", "count"),
    Column("macs", "MACs", "count"),
)


class Sort(StrEnum):
    """What `params` sorts by: sizes with the largest first, names alphabetically."""

    NUMEL = "numel"
    BYTES = "bytes"
    NAME = "name"


def parse_fields(text: str) -> list[str]:
    """Return the fields of `NAME,NAME,...`. Raises UsageError for one that no row has."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FIELDS:
            raise UsageError(f"--columns: no field {name!r}", f"the fields are {','.join(FIELDS)}")
    return names
