"""The manifest: what features were made of and with, so that a run goes on only with its own."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pttool.core.features.parts import Layout, folder_of, joined_file
from pttool.core.features.ranks import Shard
from pttool.core.features.staging import place_text, writing
from pttool.core.features.types import Format
from pttool.errors import InputError, UnavailableError, UsageError

NAME = "manifest.json"
IDS, FAILURES = "ids.txt", "failures.jsonl"
MOST_SHOWN = 3
ABSENT = "nothing"
LONGEST = 40  # characters of a value


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the output folder holds.

    `configuration` is all that values hang on, the list of inputs included; `layers` has the shape
    for each picture and the dtype, None until a part is finished; `totals` is None until all are.
    """

    configuration: Mapping[str, Any]
    layout: Layout
    layers: Mapping[str, Mapping[str, Any]]
    totals: Mapping[str, int] | None = None

    @property
    def hash(self) -> str:
        """The SHA-256 of the configuration."""
        return hashlib.sha256(_json(self.configuration).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return what is written."""
        return {
            "schema": 1,
            "configuration": self.configuration,
            "configuration_sha256": self.hash,
            "layers": self.layers,
            "parts": {"count": len(self.layout), "size": self.layout.size},
            "totals": self.totals,
        }


def read_manifest(out: Path) -> Manifest | None:
    """Return the manifest of a folder, None if it has none.

    Raises InputError for a damaged one.
    """
    try:
        found = json.loads((out / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(out) from error
    try:
        layout = Layout(found["configuration"]["inputs"]["count"], found["parts"]["size"])
        manifest = Manifest(found["configuration"], layout, found["layers"], found["totals"])
    except (LookupError, TypeError) as error:
        raise _damaged(out) from error
    return manifest


def write_manifest(out: Path, shard: Shard, manifest: Manifest) -> None:
    """Write the manifest, complete or not at all."""
    text = json.dumps(manifest.document(), indent=1, ensure_ascii=False, default=repr)
    place_text(out, shard, NAME, text + "\n")


def check_folder(out: Path) -> Manifest | None:
    """Return the manifest of an output folder, None for one that is empty or not there.

    Raises UsageError for a file and for a folder that holds something else, UnavailableError for
    one that can't be written.
    """
    above = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    if not above.is_dir():
        raise UsageError(f"{above}: is not a folder", "-o names a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UnavailableError(f"{out}: no permission to write in {above}", "write elsewhere")
    manifest = read_manifest(out)
    names = sorted(path.name for path in out.glob("[!.]*"))
    if manifest is None and names:
        raise UsageError(
            f"{out}: holds other things than features, {names[0]} for one",
            "give a new folder with -o",
        )
    return manifest


def begin(out: Path, shard: Shard, manifest: Manifest, *, overwrite: bool) -> None:
    """Make the output folder ready, or see that it holds a run like this, to go on with.

    With `overwrite`, what another run wrote goes. Raises UsageError for a folder that holds
    something else, and UnavailableError for what the system refuses.
    """
    found = check_folder(out)
    if found is not None and found.hash == manifest.hash:
        return
    if found is not None:
        if not overwrite:
            raise UsageError(
                f"{out}: was made with another configuration: {_difference(found, manifest)}",
                "give another -o, or --overwrite to begin anew",
            )
        if not shard.is_all:
            raise UsageError(
                f"--overwrite: {out} may have new parts of other shards by now",
                f"remove it first: rm -r {out}",
            )
        remove_run(out, found)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    write_manifest(out, shard, manifest)


def remove_run(out: Path, manifest: Manifest) -> None:
    """Remove what a run has written, its manifest last, and nothing else."""
    joined = (out / joined_file(format) for format in Format if format is not Format.NPY)
    for path in (out / IDS, out / FAILURES, *out.glob("part-*.json"), *joined):
        path.unlink(missing_ok=True)
    for layer in manifest.layers:
        (out / joined_file(Format.NPY, layer)).unlink(missing_ok=True)
        shutil.rmtree(out / folder_of(layer), ignore_errors=True)
    (out / NAME).unlink()


def finished(manifest: Manifest, layers: Mapping[str, Mapping[str, Any]], failed: int) -> Manifest:
    """Return the manifest of a run all of whose parts are finished."""
    totals = {"images": manifest.layout.inputs, "failed": failed}
    totals["rows"] = totals["images"] - failed
    return replace(manifest, layers=layers, totals=totals)


def _difference(found: Manifest, wanted: Manifest) -> str:
    before = dict(_flat(json.loads(_json(found.configuration))))
    now = dict(_flat(json.loads(_json(wanted.configuration))))
    keys = [key for key in {**before, **now} if before.get(key, ABSENT) != now.get(key, ABSENT)]
    told = [
        f"{key} was {_short(before.get(key, ABSENT))}, is now {_short(now.get(key, ABSENT))}"
        for key in keys[:MOST_SHOWN]
    ]
    return "; ".join(told) + ("; ..." if len(keys) > MOST_SHOWN else "")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield key, json.dumps(value)
    else:
        yield key, value


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _damaged(out: Path) -> InputError:
    return InputError(f"{out / NAME}: is damaged", f"remove {out}, and extract again")
