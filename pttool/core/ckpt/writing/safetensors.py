"""Write a safetensors file, its tensors copied from other files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pttool.core.ckpt.containers.safetensors import NAMES, safetensors_header
from pttool.core.ckpt.files.copying import copy_record, is_worth_copying, of_size
from pttool.core.ckpt.files.payload import blocks
from pttool.core.ckpt.files.words import listed
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import (
    count,
    extent,
    identity,
    is_contiguous,
    raw_blocks,
    record_of,
)
from pttool.core.ckpt.types import Record, Tensor
from pttool.core.ckpt.weights.casting import Casting
from pttool.core.ckpt.weights.layout import Named, Source, laid_out
from pttool.core.ckpt.weights.selection import unwritable
from pttool.errors import InputError

# transformers refuses a file that doesn't say it.
FOR_TORCH = {"format": "pt"}


@dataclass(frozen=True, slots=True)
class Planned:
    """A tensor of the new file: `dtype` as torch calls it, and where its elements come from."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: Source

    @property
    def size_bytes(self) -> int:
        """The bytes of the elements."""
        return count(Tensor((), self.dtype, self.shape)) * item_bytes(self.dtype)


def tied_names(tensors: Sequence[Named]) -> dict[str, str]:
    """Return the tensors that are the same elements as an earlier one, and that one's name."""
    first: dict[tuple[object, ...], str] = {}
    tied = {}
    for name, tensor in tensors:
        kept = first.setdefault(identity(tensor), name)
        if kept != name:
            tied[name] = kept
    return tied


def _overlapping(tensors: Sequence[Named]) -> list[list[str]]:
    """Return the names of tensors that share some of their elements, but aren't the same."""
    times = Counter(tensor.storage for _, tensor in tensors)
    shared = [named for named in tensors if times[named[1].storage] > 1]
    by_storage: dict[str, list[str]] = {}
    for name, tensor in laid_out(shared, compact=True).tensors:
        if tensor.storage is not None:
            by_storage.setdefault(tensor.storage.key, []).append(name)
    return [names for names in by_storage.values() if len(names) > 1]


def sharing_notes(tied: Mapping[str, str], kept: Sequence[Named]) -> tuple[str, ...]:
    """Return what to say of tensors that share elements, which the format can't."""
    notes = [f"{name} is {first} again: kept once" for name, first in tied.items()]
    notes += [
        f"{listed(names)} share elements: each has a copy of its own"
        for names in _overlapping(kept)
    ]
    return tuple(notes)


def entries_of(
    tensors: Sequence[Named], path: Path, casting: Casting | None = None
) -> list[Planned]:
    """Return how each tensor of the input `path` is written, for itself and contiguous.

    Those of larger elements come first, as the library has it, so that all are aligned. Raises
    InputError, with the names, for what the format can't hold or the file hasn't got.
    """
    for name, tensor in tensors:
        reason = unwritable(tensor)
        if reason is None and tensor.dtype not in NAMES:
            reason = f"of type {tensor.dtype}"
        if reason is not None:
            hint = "leave it out with --filter, or make a torch file with extract"
            raise InputError(f"{path}: {name} is {reason}, which safetensors can't hold", hint)
    entries = [_entry(name, tensor, casting) for name, tensor in tensors]
    return sorted(entries, key=lambda entry: -item_bytes(entry.dtype))


def _entry(name: str, tensor: Tensor, casting: Casting | None) -> Planned:
    record = record_of(tensor, name)
    target = casting.target(name, tensor.dtype) if casting is not None else None
    elements = partial(raw_blocks, tensor, name)
    if casting is not None and target is not None:
        source: Source = partial(casting.blocks, name, tensor.dtype, elements)
        return Planned(name, target, tensor.shape, source)
    is_plain = not (tensor.pending or (tensor.storage and tensor.storage.big_endian))
    if is_plain and is_contiguous(tensor) and not record.is_deflated:
        start, stop = extent(tensor)
        size = stop - start
        part = replace(
            record, offset=record.offset + start, size_bytes=size, stored_bytes=size, crc32=None
        )
        return Planned(name, tensor.dtype, tensor.shape, part)
    return Planned(name, tensor.dtype, tensor.shape, elements)


def write_safetensors(
    stream: BinaryIO, entries: Sequence[Planned], metadata: Mapping[str, str], path: Path
) -> None:
    """Write the header, then the tensors in the order of the entries, in bounded memory.

    Raises InputError for what the header can't say of the input `path`, and for one that ends
    early.
    """
    said = [(entry.name, entry.dtype, entry.shape, entry.size_bytes) for entry in entries]
    try:
        header = safetensors_header(said, metadata)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error
    stream.write(header)
    offset = len(header)
    for entry in entries:
        source = entry.source
        if isinstance(source, Record) and is_worth_copying(source, stream):
            copy_record(stream, source, offset)
        else:
            found = blocks(source) if isinstance(source, Record) else source()
            for block in of_size(found, entry.size_bytes, entry.name):
                stream.write(block)
        offset += entry.size_bytes
