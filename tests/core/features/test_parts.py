"""Parts are fixed ranges; their .npy is numpy's own, however many rows come; records are strict."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from pttool.core.features.parts import (
    Layout,
    Record,
    RowsFile,
    Stored,
    default_size,
    folder_of,
    ranges,
    read_record,
    record_text,
)
from pttool.errors import InputError

BATCHES = st.lists(st.integers(0, 5), min_size=1, max_size=4)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, max_side=3)
DTYPES = st.sampled_from([np.float32, np.float16, np.float64, np.int64, np.bool_])


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 300))
def test_parts_are_all_inputs_each_once_in_their_order(
    inputs: int, batch_size: int, size: int
) -> None:
    for layout in (Layout(inputs, size), Layout(inputs, default_size(inputs, batch_size))):
        numbers = [number for part in range(len(layout)) for number in layout.numbers(part)]
        assert numbers == list(range(inputs))
        assert layout.numbers(len(layout) - 1)
    assert default_size(inputs, batch_size) % batch_size == 0


@given(BATCHES, SHAPES, DTYPES)
def test_rows_added_in_batches_are_read_back_by_numpy(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[int],
    shape: tuple[int, ...],
    dtype: type,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    random = np.random.default_rng(0)
    rows: list[NDArray[Any]] = [
        (random.random((count, *shape)) * 9).astype(dtype) for count in batches
    ]
    with path.open("wb") as stream:
        file = RowsFile(stream, "layer")
        for batch in rows:
            file.add(torch.from_numpy(batch))
        stored = file.finish()
    assert path.stat().st_size == stored.file_bytes
    read = np.load(path, mmap_mode="r" if sum(batches) and np.prod(shape) else None)
    assert read.dtype == np.dtype(dtype)
    assert np.array_equal(read, np.concatenate(rows))


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as stream:
        file = RowsFile(stream, "conv")
        file.add(torch.zeros(2, 3))
        with pytest.raises(InputError, match=r"conv: gives \[4\] float32 .* \[3\] float32 before"):
            file.add(torch.zeros(2, 4))


def test_values_that_npy_cannot_hold_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as stream:
        file = RowsFile(stream, "conv")
        with pytest.raises(InputError, match=r"conv: gives float8_e4m3fn, which .npy can't hold"):
            file.add(torch.zeros(2, 3).to(torch.float8_e4m3fn))


def test_a_record_counts_only_whole_and_for_its_own_configuration(tmp_path: Path) -> None:
    stored = Stored((2, 3), "float32")
    record = Record(0, "abc", {"a": stored}, "cpu", ("1.png", "2.png"), ())
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "a").mkdir()
    (tmp_path / "part-00000.json").write_text(record_text(record))
    assert read_record(tmp_path, 0, "abc") is None
    (tmp_path / "a.npy").rename(tmp_path / "a" / "part-00000.npy")
    assert read_record(tmp_path, 0, "abc") == record
    assert read_record(tmp_path, 0, "other") is None
    for damaged in ("", "{", "[]", '{"part": 0}', record_text(record).replace("abc", "abd")):
        (tmp_path / "part-00000.json").write_text(damaged)
        assert read_record(tmp_path, 0, "abc") is None


def test_folders_are_named_as_layers_are_but_never_lead_elsewhere() -> None:
    names = ("features.29", "layer1.0.relu:1", "a.self_attention[0][key]", "relu5_3")
    assert [folder_of(name) for name in names] == list(names)
    assert folder_of("a/../b") == "a%2F..%2Fb"
    assert folder_of("..") == "%2E."
    assert folder_of("") == "%2E"


def test_numbers_of_parts_are_told_in_ranges() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert ranges([3]) == "3"
