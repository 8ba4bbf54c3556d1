"""Payloads: what is yielded, and what a record can't be made to do."""

import os
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pttool.core.ckpt.files.payload import blocks, crc32, read_record
from pttool.core.ckpt.types import Record
from pttool.errors import InputError

CONTENT = bytes(range(256)) * 40 + b"end"
BEFORE = b"before"


def _deflated(content: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(content) + deflater.flush()


def _record(
    path: Path, stored: bytes, size: int, *, is_deflated: bool, claimed: int | None = None
) -> Record:
    path.write_bytes(BEFORE + stored + b"after")
    count = len(stored) if claimed is None else claimed
    return Record("a/data/0", path, len(BEFORE), size, count, None, is_deflated)


@pytest.fixture(params=[False, True], ids=["stored", "deflated"])
def record(request: pytest.FixtureRequest, tmp_path: Path) -> Record:
    stored = _deflated(CONTENT) if request.param else CONTENT
    return _record(tmp_path / "file", stored, len(CONTENT), is_deflated=request.param)


def test_a_record_is_read_whole(record: Record) -> None:
    assert read_record(record, len(CONTENT)) == CONTENT
    assert crc32(record) == zlib.crc32(CONTENT)


def test_a_record_over_the_limit_is_refused(record: Record) -> None:
    with pytest.raises(InputError, match="'a/data/0' holds 10243 bytes, more than the 10242"):
        read_record(record, len(CONTENT) - 1)


@pytest.mark.parametrize("is_deflated", [False, True])
@given(
    ends=st.tuples(st.integers(0, len(CONTENT)), st.integers(0, len(CONTENT))),
    size=st.integers(1, 12_000),
)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_any_range_in_any_blocks(
    tmp_path_factory: pytest.TempPathFactory, is_deflated: bool, ends: tuple[int, int], size: int
) -> None:
    start, stop = sorted(ends)
    stored = _deflated(CONTENT) if is_deflated else CONTENT
    path = tmp_path_factory.getbasetemp() / "ranges"
    record = _record(path, stored, len(CONTENT), is_deflated=is_deflated)
    parts = list(blocks(record, start=start, stop=stop, size=size))
    assert b"".join(parts) == CONTENT[start:stop]
    assert all(0 < len(part) <= size for part in parts)


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (5, 4), (0, len(CONTENT) + 1)])
def test_ranges_outside_of_the_record(record: Record, start: int, stop: int) -> None:
    with pytest.raises(InputError, match="are asked for"):
        list(blocks(record, start=start, stop=stop))


def test_a_file_that_ends_early(record: Record) -> None:
    os.truncate(record.file, len(BEFORE) + record.stored_bytes - 1)
    for read in (crc32, lambda record: read_record(record, 1 << 20), lambda r: list(blocks(r))):
        with pytest.raises(InputError, match="cut short: it ends before 'a/data/0' does"):
            read(record)


@pytest.mark.parametrize("is_deflated", [False, True])
def test_an_empty_record(tmp_path: Path, is_deflated: bool) -> None:
    stored = _deflated(b"") if is_deflated else b""
    record = _record(tmp_path / "file", stored, 0, is_deflated=is_deflated)
    assert read_record(record, 0) == b""
    assert crc32(record) == 0


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        crc32(Record("a", tmp_path / "none", 0, 1, 1))


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        crc32(Record("a", tmp_path / "pipe", 0, 1, 1))


@pytest.mark.parametrize("claim", [0, 1, len(CONTENT) - 1, len(CONTENT) + 1, 1 << 40])
@pytest.mark.parametrize("is_deflated", [False, True])
def test_a_size_that_lies(tmp_path: Path, is_deflated: bool, claim: int) -> None:
    stored = _deflated(CONTENT) if is_deflated else CONTENT
    record = _record(tmp_path / "file", stored, claim, is_deflated=is_deflated)
    for read in (crc32, lambda record: read_record(record, 1 << 41)):
        with pytest.raises(InputError, match="'a/data/0' claims"):
            read(record)


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (b"\xff" * 20, "can't be inflated"),
        (_deflated(CONTENT)[:-2], "claims 10243 bytes and inflates to"),
        (_deflated(CONTENT) + b"more", "goes on after its deflated bytes end"),
        (_deflated(CONTENT) + b"more" * 100_000, "goes on after its deflated bytes end"),
        (b"", "claims 10243 bytes and inflates to 0"),
    ],
)
def test_broken_deflate(tmp_path: Path, stored: bytes, words: str) -> None:
    record = _record(tmp_path / "file", stored, len(CONTENT), is_deflated=True)
    with pytest.raises(InputError, match=words):
        crc32(record)


def test_a_bomb_is_not_inflated(tmp_path: Path) -> None:
    stored = _deflated(bytes(100 << 20))
    record = _record(tmp_path / "file", stored, 1000, is_deflated=True)
    tracemalloc.start()
    with pytest.raises(InputError, match="claims 1000 bytes and inflates to more"):
        read_record(record, 1000)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_a_large_record_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as stream:
        stream.truncate(200 << 20)
    record = Record("a", path, 0, 200 << 20, 200 << 20)
    tracemalloc.start()
    crc32(record)
    assert sum(map(len, blocks(record))) == 200 << 20
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
