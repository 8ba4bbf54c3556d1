"""What of a checkpoint a model would load, and the change of prefix with which it would be more."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pttool.core.ckpt.batch import readable
from pttool.core.ckpt.comparing.prefixes import PrefixChange, Shape, Shapes, better_prefix, renamed
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.paths import dotted
from pttool.core.ckpt.weights.model_weights import model_weights
from pttool.core.ckpt.weights.state_dicts import Weights
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError

MATCHED, MISSING, UNEXPECTED, OTHER_SHAPE = "matched", "missing", "unexpected", "shape"
FIELDS = ("key", "status", "checkpoint_key", "checkpoint_shape", "model_shape")
COLUMNS = (
    Column("key", "Key"),
    Column("status", "Status"),
    Column("checkpoint_shape", "Checkpoint", "shape"),
    Column("model_shape", "Model", "shape"),
)
FOOTER = (
    Column("matched", "Matched", "count"),
    Column("missing", "Missing", "count"),
    Column("unexpected", "Unexpected", "count"),
    Column("mismatched", "Of another shape", "count"),
    Column("matched_parameters", "Elements matched", "ratio"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A key of the model, or one of the checkpoint that the model doesn't have."""

    key: str
    status: str
    checkpoint_key: str | None
    checkpoint_shape: Shape | None
    model_shape: Shape | None


def match(
    path: Path,
    model: Shapes,
    model_name: str,
    *,
    key: str | None = None,
    apply_prefix: bool = False,
) -> Report:
    """Compare the weights in a file with the state dict of a model: its keys' shapes, in order.

    The weights are those that `extract` finds, or those under a dotted `key`. Missing and
    unexpected are what load_state_dict(strict=True) calls so. The report is of the keys as they are
    or, with `apply_prefix`, after the change of prefix with which most of them match. It fails
    unless all keys match. Raises InputError for a file without weights, UsageError for a key that
    isn't there.
    """
    with readable(path) as file:
        weights = model_weights(read(file), key)
    shapes = {name: tensor.shape for name, tensor in weights.tensors}
    change = better_prefix(shapes, model)
    names = {name: name for name in shapes}
    if apply_prefix and change is not None:
        names = renamed(shapes, change.renaming)
    rows = list(_rows(shapes, names, model))
    summary = _summary(rows, model, model_name, weights, change)
    said = () if change is None else (_suggestion(change, model, apply_prefix),)
    return Report(
        FIELDS,
        COLUMNS,
        [_item(row) for row in rows],
        summary,
        FOOTER,
        said,
        _failure(path, summary, change if not apply_prefix else None),
    )


def only_unmatched(report: Report) -> Report:
    """Return the report without the rows of keys that match: a short table."""
    return replace(report, items=[row for row in report.items if row["status"] != MATCHED])


def _rows(shapes: Shapes, names: Mapping[str, str], model: Shapes) -> Iterator[Row]:
    """Yield the model's keys in its order, then those that only the checkpoint has in its."""
    for name, wanted in model.items():
        old = names.get(name)
        if old is None:
            yield Row(name, MISSING, None, None, wanted)
        else:
            status = MATCHED if shapes[old] == wanted else OTHER_SHAPE
            yield Row(name, status, old, shapes[old], wanted)
    for name, old in names.items():
        if name not in model:
            yield Row(name, UNEXPECTED, old, shapes[old], None)


def _item(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FIELDS}


def _summary(
    rows: list[Row],
    model: Shapes,
    model_name: str,
    weights: Weights,
    change: PrefixChange | None,
) -> dict[str, Any]:
    counts = {
        name: sum(row.status == status for row in rows)
        for name, status in (
            ("matched", MATCHED),
            ("missing", MISSING),
            ("unexpected", UNEXPECTED),
            ("mismatched", OTHER_SHAPE),
        )
    }
    elements = sum(math.prod(shape) for shape in model.values())
    loaded = sum(math.prod(row.model_shape or ()) for row in rows if row.status == MATCHED)
    return {
        **counts,
        "matched_parameters": loaded / elements if elements else None,
        "model": model_name,
        "weights": dotted(weights.path),
        "strip_prefix": (change.renaming.prefix or None) if change else None,
        "add_prefix": (change.renaming.added or None) if change else None,
        "matched_with_prefix": change.matched if change else None,
    }


def _suggestion(change: PrefixChange, model: Shapes, is_applied: bool) -> str:
    renaming = change.renaming
    said = [f"without {' and '.join(change.wrappers)}"] if change.wrappers else []
    said += [f"without the prefix {renaming.prefix}"] if renaming.prefix else []
    said += [f"with the prefix {renaming.added}"] if renaming.added else []
    how = " and ".join(said)
    verb = "match" if is_applied else "would match"
    return f"{how}, {change.matched:,} of {len(model):,} keys {verb}"


def _failure(
    path: Path, summary: Mapping[str, Any], change: PrefixChange | None
) -> CheckFailedError | None:
    words = {"missing": "missing", "unexpected": "unexpected", "mismatched": "of another shape"}
    wrong = [f"{summary[name]:,} {word}" for name, word in words.items() if summary[name]]
    if not wrong:
        return None
    if change is not None and summary["matched"] < change.matched:
        hint = f"to rename the keys: {change.command(str(path))}"
    elif summary["mismatched"]:
        hint = "it is of another model, or built with other arguments: see --kw"
    else:
        hint = "load_state_dict(..., strict=False) leaves out what is missing or unexpected"
    said = f"{path}: does not fill {summary['model']}: {', '.join(wrong)}"
    return CheckFailedError(said, hint)
