"""`merge`: see that all parts are there, and make of them what is asked for."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pttool.core.features.joining import Joint, join
from pttool.core.features.manifest import (
    FAILURES,
    IDS,
    Manifest,
    finished,
    read_manifest,
    write_manifest,
)
from pttool.core.features.parts import Failure, Record, Stored, failure_item, ranges, read_record
from pttool.core.features.ranks import Shard
from pttool.core.features.staging import place, place_text, remove_abandoned, staged
from pttool.core.features.types import Format
from pttool.core.report import Column, Report
from pttool.errors import InputError

COLUMNS = (
    Column("layer", "Layer"),
    Column("shape", "Shape", "shape"),
    Column("dtype", "Type"),
    Column("bytes", "Size", "bytes"),
)
FIELDS = (*(column.key for column in COLUMNS), "path")
MOST_MISSING = 120  # characters


@dataclass(frozen=True, slots=True)
class Whole:
    """A run all of whose parts are finished; its rows are those of all of them."""

    out: Path
    manifest: Manifest
    layers: Mapping[str, Stored]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...] = ()

    def ids(self) -> Iterator[str]:
        """Yield the id of each row, read part by part."""
        for record in _records(self.out, self.manifest):
            yield from record.ids if record else ()


def merge(out: Path, format: Format = Format.NPY) -> Report:
    """Join the parts in a folder into one file for each layer, or one for all of them.

    Raises InputError for a folder without features, or with missing parts, which are named; and as
    `joining.join` does.
    """
    manifest = read_manifest(out)
    if manifest is None:
        raise InputError(
            f"{out}: holds no features", "name the folder that extract -o has written to"
        )
    shard = Shard()
    whole = gathered(out, manifest)
    complete(whole, shard)
    paths = join(joint(whole), format, shard)
    remove_abandoned(out, shard)
    summary = {
        "layers": {layer: described(stored) for layer, stored in whole.layers.items()},
        "images": manifest.layout.inputs,
        "failed": len(whole.failures),
        "parts": len(manifest.layout),
    }
    footer = (Column("images", "Images", "count"), Column("failed", "Left out", "count"))
    return Report(FIELDS, COLUMNS, items(whole.layers, paths), summary, footer, whole.notes)


def missing(out: Path, manifest: Manifest) -> list[int]:
    """Return the parts that aren't finished."""
    return [part for part, record in enumerate(_records(out, manifest)) if record is None]


def gathered(out: Path, manifest: Manifest) -> Whole:
    """Return what the parts hold together; raises InputError where some are missing."""
    absent = missing(out, manifest)
    if absent:
        told = ranges(absent)
        shown = told if len(told) <= MOST_MISSING else told[:MOST_MISSING] + " ..."
        raise InputError(
            f"{out}: {len(absent)} of {len(manifest.layout)} parts are missing: {shown}",
            "the command that made the others, or all of its shards, goes on with them",
        )
    failures: list[Failure] = []
    made_on: set[str] = set()
    layers: Mapping[str, Stored] = {}
    for record in _records(out, manifest):
        assert record is not None
        failures += record.failures
        made_on.add(record.made_on)
        layers = with_more(out, layers, record)
    notes: tuple[str, ...] = ()
    if len(made_on) > 1:
        notes = (f"parts were made on {' and '.join(sorted(made_on))}, which may differ in bits",)
    return Whole(out, manifest, layers, tuple(failures), notes)


def complete(whole: Whole, shard: Shard) -> None:
    """Write what is known once all parts are there: ids, failures, the manifest with its totals."""
    with staged(whole.out, shard) as folder:
        with (folder / IDS).open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{one}\n" for one in whole.ids())
        place(folder, whole.out, [IDS])
    lines = (json.dumps(failure_item(one), ensure_ascii=False) for one in whole.failures)
    place_text(whole.out, shard, FAILURES, "".join(f"{line}\n" for line in lines))
    layers = {
        layer: {**whole.manifest.layers[layer], **_described_row(stored)}
        for layer, stored in whole.layers.items()
    }
    write_manifest(whole.out, shard, finished(whole.manifest, layers, len(whole.failures)))


def joint(whole: Whole) -> Joint:
    """Return what is joined of a run."""
    return Joint(whole.out, range(len(whole.manifest.layout)), whole.layers, whole.ids)


def items(layers: Mapping[str, Stored], paths: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return an item for each layer; `paths` are where they are, below the output folder."""
    return [
        {"layer": layer, **described(stored), "path": paths[layer]}
        for layer, stored in layers.items()
    ]


def described(stored: Stored) -> dict[str, Any]:
    """Return what a report says of a layer: all its rows."""
    return {"shape": list(stored.shape), "dtype": stored.dtype, "bytes": stored.array_bytes}


def with_more(out: Path, layers: Mapping[str, Stored], record: Record) -> dict[str, Stored]:
    """Return what layers hold with one more part; raises InputError for rows of another shape."""
    return {
        layer: _added(out, layer, layers.get(layer), stored)
        for layer, stored in record.layers.items()
    }


def _added(out: Path, layer: str, before: Stored | None, more: Stored) -> Stored:
    if before is None:
        return more
    if (before.shape[1:], before.dtype) != (more.shape[1:], more.dtype):
        raise InputError(
            f"{out}: {layer} has rows {list(before.shape[1:])} {before.dtype} in one part and "
            f"{list(more.shape[1:])} {more.dtype} in another",
            "take a layer whose output has one shape, or --pool gap",
        )
    rows = before.shape[0] + more.shape[0]
    return Stored((rows, *before.shape[1:]), before.dtype)


def _described_row(stored: Stored) -> dict[str, Any]:
    return {"shape": list(stored.shape[1:]), "dtype": stored.dtype}


def _records(out: Path, manifest: Manifest) -> Iterator[Record | None]:
    digest = manifest.hash
    for part in range(len(manifest.layout)):
        yield read_record(out, part, digest)
