"""Which format a file has: told by its first bytes, and for text by its name or first line."""

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pttool.core.eval.reading.npy import MAGIC as NPY_MAGIC
from pttool.core.eval.reading.npy import npy_table
from pttool.core.eval.reading.npz import ZIP_ERRORS, npz_table
from pttool.core.eval.reading.parquet import MAGIC as PARQUET_MAGIC
from pttool.core.eval.reading.parquet import parquet_table
from pttool.core.eval.reading.sources import FileArgument, Source, reading, source_of
from pttool.core.eval.reading.tables import Columns, Table
from pttool.core.eval.reading.text_files import csv_table, jsonl_table
from pttool.core.eval.reading.torch_files import torch_table
from pttool.errors import InputError

TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
JSON_LINES_SUFFIXES = (".jsonl", ".ndjson")
# What the suffix of a binary format promises, for a file that starts as none of them does.
PROMISES = {
    ".npz": "a zip as np.savez writes", ".npy": "an array as np.save writes",
    ".parquet": "parquet", **dict.fromkeys(TORCH_SUFFIXES, "what torch.save writes"),
}  # fmt: skip
PACKED = {b"\x1f\x8b": "gzip -dc", b"BZh": "bzip2 -dc", b"\xfd7zXZ": "xz -dc",
          b"\x28\xb5\x2f\xfd": "zstd -dc"}  # fmt: skip


def open_table(file: FileArgument) -> Table:
    """Return the columns of a file. Raises InputError for one that can't be read."""
    source = source_of(file)
    with reading(source.name):
        return _told(_table(source, source.head(4096)))


def _told(table: Table) -> Table:
    """Return the table, with what the system refuses while it is read as an InputError."""

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        with reading(table.name):
            yield from table.read(wanted, rows)

    return replace(table, read=read)


def _table(source: Source, head: bytes) -> Table:
    if head.startswith(NPY_MAGIC):
        raise InputError(
            f"{source.name}: is one array without a label and a prediction",
            "give two: --true Y.npy --pred P.npy (or --scores S.npy), or save one .npz",
        )
    if head.startswith(b"PK\x03\x04") or head.startswith(b"PK\x05\x06"):
        return _zip_table(source)
    if head.startswith(PARQUET_MAGIC):
        return parquet_table(source.name, source.open)
    if head.startswith(b"\x80") and source.suffix in TORCH_SUFFIXES:
        return torch_table(source.name, source.open)
    _refuse_binary(source, head)
    return _text_table(source, head)


def open_arrays(files: Sequence[str]) -> tuple[Table, list[str]]:
    """Return .npy files as one table, and its key of each. Raises InputError for any other file."""
    sources = [source_of("-" if file == "-" else Path(file)) for file in files]
    for source in sources:
        if not source.head(6).startswith(NPY_MAGIC):
            raise InputError(
                f"{source.name}: is no .npy array",
                "without FILE, --true, --pred and --scores name .npy files; "
                "with FILE, they name its columns",
            )
    names = [source.name for source in sources]
    with reading(" and ".join(names)):
        return _told(npy_table({source.name: source.open for source in sources})), names


def _zip_table(source: Source) -> Table:
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            is_torch = any(name.endswith("data.pkl") for name in archive.namelist())
    except ZIP_ERRORS:
        is_torch = source.suffix in TORCH_SUFFIXES
    return (torch_table if is_torch else npz_table)(source.name, source.open)


def _refuse_binary(source: Source, head: bytes) -> None:
    for magic, command in PACKED.items():
        if head.startswith(magic):
            hint = f"{command} {source.name} | pttool eval report -"
            raise InputError(f"{source.name}: is compressed", hint)
    if head.startswith(b"\x80"):
        raise InputError(
            f"{source.name}: is a pickle, which is refused: loading it could run any code",
            "save it with np.savez(FILE, label=..., prediction=...)",
        )
    if source.suffix in PROMISES:
        message = f"{source.name}: is not {PROMISES[source.suffix]}"
        raise InputError(message, "copy or save it again, or name it by what it is")


def _text_table(source: Source, head: bytes) -> Table:
    if source.suffix in JSON_LINES_SUFFIXES:
        return jsonl_table(source.name, source.open)
    if source.suffix in (".csv", ".tsv"):
        delimiter = "\t" if source.suffix == ".tsv" else None
        return csv_table(source.name, source.open, delimiter)
    if re.match(rb"(\xef\xbb\xbf)?\s*[{\[]", head):
        return jsonl_table(source.name, source.open)
    return csv_table(source.name, source.open, None)
