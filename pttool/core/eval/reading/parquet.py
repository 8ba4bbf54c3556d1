"""Parquet files, through pyarrow where it is installed."""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from pttool.core.eval.reading.npy import BLOCK_BYTES
from pttool.core.eval.reading.tables import Column, Columns, Table
from pttool.core.eval.reading.text_files import LISTS_HINT
from pttool.errors import InputError, UnavailableError

MAGIC = b"PAR1"
LARGEST_BATCH = 1 << 16
VALUE_BYTES = 8  # of the widest number


def parquet_table(name: str, reopen: Callable[[], BinaryIO]) -> Table:
    """Return the columns of a parquet file.

    Raises UnavailableError without pyarrow, InputError for a file that can't be read.
    """
    try:
        arrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        message = f"{name}: reading parquet needs pyarrow"
        raise UnavailableError(message, "pip install pyarrow, or save it as npz or csv") from error
    failures = (arrow.ArrowException, OSError, ValueError)

    def damaged(error: Exception) -> InputError:
        reason = " ".join(str(error).split())[:200]
        return InputError(f"{name}: is a damaged or cut parquet file: {reason}", "copy it again")

    try:
        with reopen() as stream:
            schema = parquet.ParquetFile(stream).schema_arrow
    except failures as error:
        raise damaged(error) from error

    keys = tuple(schema.names)
    wide = frozenset(column.name for column in schema if _is_list(column.type))

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        if twice := [key for key in wanted if keys.count(key) > 1]:
            raise InputError(f"{name}: has several columns {twice[0]!r}", "rename all but one")
        with reopen() as stream:
            try:
                file = parquet.ParquetFile(stream)
                most = BLOCK_BYTES // _row_bytes(file.metadata, wanted)
                size = max(1, min(rows, LARGEST_BATCH, most))
                for batch in file.iter_batches(size, columns=list(wanted)):
                    yield {key: _column(batch.column(key), f"{name}: {key}") for key in wanted}
            except failures as error:
                raise damaged(error) from error

    return Table(name, keys, {}, wide, read)


def _row_bytes(metadata: Any, wanted: Sequence[str]) -> int:
    """Return how many bytes a row of these columns takes, in the row group with the widest."""
    widest = 1
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = 0
        for place in range(group.num_columns):
            chunk = group.column(place)
            if any(f"{chunk.path_in_schema}.".startswith(f"{key}.") for key in wanted):
                size += max(chunk.num_values * VALUE_BYTES, chunk.total_uncompressed_size)
        widest = max(widest, size // max(group.num_rows, 1))
    return widest


def _column(array: Any, what: str) -> Column:
    arrow = import_module("pyarrow")
    if arrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        message = f"{what}: has {array.null_count} empty cells"
        raise InputError(message, "fill or drop those rows")
    if arrow.types.is_string(array.type) or arrow.types.is_large_string(array.type):
        return [str(text) for text in array.to_pylist()]
    if _is_list(array.type):
        return _scores(array, what)
    if not _is_number(array.type):
        raise InputError(f"{what}: is of type {array.type}", "save integers, floats, bool or text")
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _scores(array: Any, what: str) -> Column:
    """Return a column of lists of one length as (N, C)."""
    cells = array.flatten()
    if cells.null_count or not _is_number(cells.type) or len(cells) % len(array):
        raise InputError(
            f"{what}: is not one list of numbers per row, all of one length", "save it so"
        )
    width = len(cells) // len(array)
    if any(len(row) != width for row in array):
        raise InputError(f"{what}: holds lists of different lengths", LISTS_HINT)
    return np.asarray(cells.to_numpy(zero_copy_only=False)).reshape(len(array), width)


def _is_list(kind: Any) -> bool:
    arrow = import_module("pyarrow")
    return bool(
        arrow.types.is_list(kind)
        or arrow.types.is_large_list(kind)
        or arrow.types.is_fixed_size_list(kind)
    )


def _is_number(kind: Any) -> bool:
    arrow = import_module("pyarrow")
    return bool(
        arrow.types.is_integer(kind)
        or arrow.types.is_floating(kind)
        or arrow.types.is_boolean(kind)
    )
