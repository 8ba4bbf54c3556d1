"""Files that torch.save wrote: a dict of tensors, loaded with weights_only and nothing else."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from pttool.core.eval.reading.npy import BLOCK_BYTES, as_column
from pttool.core.eval.reading.tables import Column, Columns, Table, wide_keys
from pttool.core.eval.reading.text_files import column_of
from pttool.core.foreign import foreign_code
from pttool.errors import InputError


def torch_table(name: str, reopen: Callable[[], BinaryIO]) -> Table:
    """Return the tensors, arrays and lists of a saved dict, which is held in memory.

    Raises InputError for a file that weights_only refuses, or that holds no dict.
    """
    found = _load(name, reopen)
    if not isinstance(found, Mapping):
        raise InputError(
            f"{name}: holds a {type(found).__name__}, not a dict",
            "torch.save({'label': ..., 'prediction': ...}, FILE)",
        )
    values = {str(key): value for key, value in found.items()}
    shapes = {key: tuple(value.shape) for key, value in values.items() if hasattr(value, "shape")}
    shapes |= {key: (len(value),) for key, value in values.items() if _is_flat(value)}
    wide = wide_keys(shapes) | {key for key, value in values.items() if _holds_lists(value)}

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        columns = {key: _column(values[key], f"{name}: {key}") for key in wanted}
        widths = [c[:1].nbytes for c in columns.values() if isinstance(c, np.ndarray)]
        rows = max(1, min(rows, BLOCK_BYTES // max([1, *widths])))
        count = _one_length(name, columns)
        for start in range(0, count, rows):
            yield {key: column[start : start + rows] for key, column in columns.items()}

    return Table(name, tuple(values), shapes, wide, read)


def _one_length(name: str, columns: Columns) -> int:
    (first, column), *others = columns.items()
    for key, other in others:
        if len(other) != len(column):
            raise InputError(
                f"{name}: {first} has {len(column)} rows, {key} has {len(other)}",
                "they need one entry per sample each",
            )
    return len(column)


def _load(name: str, reopen: Callable[[], BinaryIO]) -> Any:
    import torch

    try:
        with reopen() as stream, foreign_code(name):
            return torch.load(stream, map_location="cpu", weights_only=True)
    except InputError as error:
        if isinstance(error.__cause__, pickle.UnpicklingError):
            raise InputError(
                f"{name}: holds more than tensors, and loading it could run any code",
                "save only tensors, or use np.savez(FILE, label=..., prediction=...)",
            ) from error
        hint = "copy it again, or save it again with torch.save"
        raise InputError(f"{name}: can't be loaded by torch: {error.message}", hint) from error


def _is_flat(value: Any) -> bool:
    return isinstance(value, list | tuple) and not any(isinstance(v, list | tuple) for v in value)


def _holds_lists(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _column(value: Any, what: str) -> Column:
    import torch

    if isinstance(value, torch.Tensor):
        with foreign_code(what):
            if value.dtype == torch.bfloat16:
                value = value.float()
            return as_column(value.detach().resolve_conj().resolve_neg().numpy(), what)
    if isinstance(value, np.ndarray):
        return as_column(value, what)
    if isinstance(value, list | tuple):
        return column_of(value, what)
    raise InputError(f"{what}: is a {type(value).__name__}", "save tensors")
