"""List what is in checkpoints: tensors, values, and who can load them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pttool.core.ckpt.batch import each
from pttool.core.ckpt.listing import FIELDS, Row, grouped, rows
from pttool.core.ckpt.overview import Overview, merged, overview
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.types import Checkpoint, Tensor, Value
from pttool.core.report import Column, Report

STATISTICS = ("min", "max", "mean", "nan", "inf")
SORT_KEYS = {"key": "key", "size": "size_bytes", "numel": "numel", "dtype": "dtype"}
LARGEST_FIRST = ("size_bytes", "numel")

KEY = Column("key", "Key")
COLUMNS = (
    Column("shown", "Shape or value"),
    Column("dtype", "Dtype"),
    Column("device", "Device", optional=True),
    Column("numel", "Elements", "count", optional=True),
    Column("size_bytes", "Size", "bytes"),
    Column("remarks", "Remarks", optional=True),
)
STATISTICS_COLUMNS = (
    Column("min", "Min"),
    Column("max", "Max"),
    Column("mean", "Mean"),
    Column("nan", "NaN", "count"),
    Column("inf", "Inf", "count"),
)
FOOTER = (
    Column("format", "Format"),
    Column("format_version", "Format version"),
    Column("tensors", "Tensors", "count"),
    Column("parameters", "Parameters", "count"),
    Column("needed_bytes", "Needed", "bytes"),
    Column("stored_bytes", "Stored", "bytes"),
    Column("devices", "Devices", "list"),
    Column("dtypes", "Dtypes", "list"),
    Column("prefixes", "Prefixes", "list"),
    Column("framework_versions", "Versions", "list"),
    Column("weights_only", "Loads with weights_only=True"),
)


def inspect(
    paths: Sequence[Path],
    *,
    pattern: str | None = None,
    sort: str | None = None,
    depth: int | None = None,
    tree: bool = False,
    statistics: bool = False,
) -> Report:
    """Return a row for each tensor and value of the files, in their order.

    `pattern` is a glob of dotted names; `sort` one of SORT_KEYS; `depth` sums up what has more
    segments in its name; `statistics` reads the elements. With several files, those that can't be
    read are noted, and a failure is raised in the end. Raises InputError for one that can't.
    """
    done = each(paths, lambda path: _listed(read(path), pattern, statistics))
    listed = [{**row, "file": name} for name, (found, _) in done.results for row in found]
    if sort is not None:
        key = SORT_KEYS[sort]
        listed.sort(key=lambda row: _order(row[key]), reverse=key in LARGEST_FIRST)
    if tree or depth is not None:
        listed = grouped(listed, depth)
    if depth is not None and not tree:
        listed = [row for row in listed if row["kind"] != "group" or row["depth"] == depth - 1]
    summary = merged({name: found for name, (_, found) in done.results})
    several = len(paths) > 1
    return Report(
        fields=FIELDS + (STATISTICS if statistics else ()),
        columns=(
            *((Column("file", "File"),) if several else ()),
            Column("key", "Key", "tree") if tree else KEY,
            *COLUMNS,
            *(STATISTICS_COLUMNS if statistics else ()),
        ),
        items=listed,
        summary=summary,
        footer=FOOTER,
        notes=(*done.notes, *_notes(done.results, pattern)),
        failure=done.failure,
    )


def _notes(
    results: Sequence[tuple[str, tuple[list[Row], Overview]]], pattern: str | None
) -> list[str]:
    notes = [f"{name}: {said}" for name, (_, summary) in results for said in summary["warnings"]]
    if pattern is not None and results and not any(found for _, (found, _) in results):
        notes.append(f"no name matches {pattern}")
    return notes


def _listed(
    checkpoint: Checkpoint, pattern: str | None, statistics: bool
) -> tuple[list[Row], Overview]:
    found = []
    for leaf, row in rows(checkpoint, pattern):
        row["remarks"] = _remarks(row)
        if statistics:
            row |= _statistics(leaf, row["key"])
        found.append(row)
    return found, overview(checkpoint)


def _statistics(leaf: Tensor | Value, name: str) -> Row:
    """Read the elements of a tensor, and return what they come to."""
    if isinstance(leaf, Value):
        return dict.fromkeys(STATISTICS)
    from pttool.core.ckpt.comparing.statistics import statistics_of

    told = statistics_of(leaf, name)
    return {name: getattr(told, name) for name in STATISTICS}


def _remarks(row: Row) -> str:
    """Return what the other columns don't say of a tensor."""
    said = []
    if row["shared_with"] is not None:
        said.append(f"shares {row['shared_with']}")
    if row["kind"] == "tensor" and not row["is_contiguous"]:
        said.append(f"stride {row['stride']}")
    if row["layout"] not in (None, "strided"):
        said.append(row["layout"])
    if row["chunks"] and len(row["chunks"]) > 1:
        said.append(f"{len(row['chunks'])} chunks")
    if row["kind"] == "tensor" and row["type"] not in ("Tensor", "Parameter"):
        said.append(row["type"])
    return ", ".join(said)


def _order(value: Any) -> tuple[bool, Any]:
    """Sort what is unknown below all else."""
    return value is not None, value
