"""Save a safetensors file under other names: only its header changes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pttool.core.ckpt.containers.safetensors import METADATA, encoded_header, open_safetensors
from pttool.core.ckpt.editing.rewriting import spliced
from pttool.core.ckpt.files.payload import opened, read_at
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.pickles.edits import Edit
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.weights.model_weights import tied_in
from pttool.errors import InputError, UsageError

LENGTH_BYTES = 8


def tensor_names(path: Path) -> list[str]:
    """Return the names of the tensors, then those that the metadata says are one of them again.

    Raises InputError for a file that can't be read.
    """
    checkpoint = open_safetensors(path)
    names = [name_of(tensor) for tensor in checkpoint.tensors]
    return [*names, *tied_in(checkpoint.facts, names)]


def rename(path: Path, target: Path, new_names: Mapping[str, str]) -> None:
    """Save with new names for some tensors, also where the metadata says which are tied.

    The offsets, which count from the header, stay. Raises InputError for a file that can't be
    read, and for names that the format can't hold; UsageError for one that isn't Unicode.
    """
    checkpoint = open_safetensors(path)  # checks the header that is edited here
    tied = tied_in(checkpoint.facts, [name_of(tensor) for tensor in checkpoint.tensors])
    with opened(path) as file:
        size = int.from_bytes(read_at(file, 0, LENGTH_BYTES, path), "little")
        header: dict[str, Any] = json.loads(read_at(file, LENGTH_BYTES, size, path))
    metadata = header.pop(METADATA, None)
    renamed = _renamed(header, new_names, path)
    if metadata is not None:
        ties = _renamed(tied, new_names, path)
        others = {key: text for key, text in metadata.items() if key not in tied}
        metadata = others | {name: new_names.get(kept, kept) for name, kept in ties.items()}
        renamed = {METADATA: metadata, **renamed}
    try:
        new = encoded_header(renamed, least=size)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error
    spliced(path, target, [Edit(0, LENGTH_BYTES + size, new)])


def _renamed(values: Mapping[str, Any], new_names: Mapping[str, str], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        new = new_names.get(name, name)
        if new == METADATA or new in found:
            what = f"{path}: {quoted(name)} can't become {quoted(new)}: the name is taken"
            raise InputError(what, "choose another prefix")
        try:
            new.encode()
        except UnicodeEncodeError as error:
            hint = "safetensors holds UTF-8 only: choose another prefix"
            raise UsageError(f"{quoted(new)}: isn't Unicode", hint) from error
        found[new] = value
    return found
