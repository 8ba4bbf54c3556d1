"""The zip that torch.save and torch.jit.save write: a pickle, and a record for each storage.

Source: torch.serialization._save, and PyTorchStreamWriter's names of records.
"""

import re
from pathlib import Path

from pttool.core.ckpt.files.payload import read_record
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.tensors.leaves import Leaves
from pttool.core.ckpt.tensors.storages import Storages
from pttool.core.ckpt.types import Checkpoint, Format, Record, Tensor, Value
from pttool.core.ckpt.zips.directory import Directory, Entry, read_directory
from pttool.errors import InputError

LARGEST_PICKLE = 1 << 28
# What a small file can make a reader hold.
LARGEST_INFLATED = 1 << 26
LONGEST_NOTE = 256
LARGEST_ALIGNMENT = 1 << 16
# The small records in which torch says how it wrote the others.
_MAIN_PICKLE = re.compile(r"([^/]*/)?data\.pkl")
NOTES = ("byteorder", ".format_version", ".storage_alignment")


def open_torch_zip(path: Path, kind: Format = Format.TORCH_ZIP) -> Checkpoint:
    """Return what a zip of torch holds. Raises InputError for a broken or cut one."""
    directory = read_directory(path)
    main = main_pickle(directory)
    prefix = main.name.removesuffix("data.pkl")
    records = directory.records()
    by_name = {record.name: record for record in reversed(records)}  # the first of a doubled name
    pickles = [
        walk(read_pickle(by_name[name]), by_name[name])
        for name in (main.name, f"{prefix}constants.pkl")
        if name in by_name
    ]
    facts = _facts(by_name, prefix)
    storages = Storages(
        lambda key: by_name.get(f"{prefix}data/{key}"), big_endian=facts.get("byteorder") == "big"
    )
    leaves = Leaves(pickles[0].root, storages)
    found = list(leaves)
    return Checkpoint(
        path=path,
        format=kind,
        format_version=_note(by_name.get(f"{prefix}version")),
        root=pickles[0].root,
        tensors=tuple(leaf for leaf in found if isinstance(leaf, Tensor)),
        values=tuple(leaf for leaf in found if isinstance(leaf, Value)),
        leaves=tuple(found),
        records=records,
        pickles=tuple(pickles),
        facts=facts,
        warnings=(*directory.warnings, *leaves.warnings),
    )


def open_torchscript(path: Path) -> Checkpoint:
    """Return what a TorchScript archive holds. Raises InputError for a broken or cut one."""
    return open_torch_zip(path, Format.TORCHSCRIPT)


def read_pickle(record: Record) -> bytes:
    """Return the bytes of a pickle. Raises InputError for an absurdly large one."""
    return read_record(record, LARGEST_INFLATED if record.is_deflated else LARGEST_PICKLE)


def main_pickle(directory: Directory) -> Entry:
    """Return the entry of the pickle of what was saved.

    Raises InputError for a zip with none, or with several, of which one can't be chosen.
    """
    found = [entry for entry in directory.entries if _MAIN_PICKLE.fullmatch(entry.name)]
    if len(found) != 1:
        raise InputError(
            f"{directory.path}: holds {len(found) or 'no'} data.pkl, not one",
            "it is no checkpoint of torch, or a damaged one",
        )
    return found[0]


def alignment(directory: Directory, prefix: str) -> int:
    """Return the number of bytes of which every record's offset is a multiple."""
    entry = directory.find(f"{prefix}.storage_alignment")
    text = _note(directory.record(entry)) if entry else None
    return int(text) if text and text.isdecimal() and 0 < int(text) <= LARGEST_ALIGNMENT else 64


def _facts(by_name: dict[str, Record], prefix: str) -> dict[str, str]:
    facts = {note.lstrip("."): _note(by_name.get(prefix + note)) for note in NOTES}
    return {key: value for key, value in facts.items() if value is not None}


def _note(record: Record | None) -> str | None:
    if record is None or record.size_bytes > LONGEST_NOTE:
        return None
    return read_record(record, LONGEST_NOTE).decode("utf-8", "replace").strip()
