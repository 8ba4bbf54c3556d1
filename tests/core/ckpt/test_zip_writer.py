"""The zips that are written: as torch lays them out, and readable by zipfile and torch."""

import errno
import io
import os
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.utils.serialization import config

from pttool.core.ckpt.files.copying import copy_range
from pttool.core.ckpt.types import Record
from pttool.core.ckpt.zips.consistency import consistency
from pttool.core.ckpt.zips.directory import read_directory
from pttool.core.ckpt.zips.writer import ZipWriter
from pttool.errors import InputError

LARGE = 300_000  # bytes: copied in the kernel


def _state_dict() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "small": torch.arange(10),
        "empty": torch.zeros(0),
        "large": torch.rand(LARGE // 4),
        "half": torch.rand(77).half(),
    }


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.pt"
    torch.save(_state_dict(), path)
    return path


def _rewrite(source: Path, target: Path, alignment: int = 64) -> None:
    with target.open("wb") as stream:
        writer = ZipWriter(stream, alignment)
        for record in read_directory(source).records():
            writer.copy(record, record.name)
        writer.close()


def _assert_sound(path: Path) -> None:
    directory = read_directory(path)
    assert directory.warnings == ()
    assert consistency(directory) == ()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def _assert_loads(path: Path) -> None:
    expected = _state_dict()
    for weights_only in (True, False):
        for mmap in (True, False):
            found = torch.load(path, weights_only=weights_only, mmap=mmap)
            assert list(found) == list(expected)
            assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_a_copy_is_laid_out_as_torch_does(weights: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.pt"
    _rewrite(weights, target)
    old, new = read_directory(weights), read_directory(target)
    assert target.stat().st_size == weights.stat().st_size
    for field in ("name", "flags", "crc32", "size_bytes", "header_offset"):
        before = [getattr(entry, field) for entry in old.entries]
        assert [getattr(entry, field) for entry in new.entries] == before
    assert [x.offset for x in new.records()] == [x.offset for x in old.records()]
    _assert_sound(target)
    _assert_loads(target)


@contextmanager
def _configured(where: object, name: str, value: object) -> Iterator[None]:
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


@pytest.mark.parametrize("alignment", [64, 4096])
def test_torch_computes_the_same_offsets(tmp_path: Path, alignment: int) -> None:
    source, target = tmp_path / "weights.pt", tmp_path / "copy.pt"
    with _configured(config.save, "storage_alignment", alignment):
        torch.save(_state_dict(), source)
    _rewrite(source, target, alignment)
    _assert_sound(target)
    with _configured(config.load, "calculate_storage_offsets", True):
        _assert_loads(target)


def test_records_of_every_origin(tmp_path: Path) -> None:
    source, target = tmp_path / "source.zip", tmp_path / "target.zip"
    payload = bytes(range(256)) * (LARGE // 256)
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deflated", payload)
        archive.writestr("stored", payload, zipfile.ZIP_STORED)
    deflated, stored = read_directory(source).records()
    raw = Record("raw", source, stored.offset, len(payload), len(payload))
    with target.open("wb") as stream:
        writer = ZipWriter(stream)
        writer.add("é/added", payload)
        writer.add("empty", b"")
        writer.add_stream("streamed", len(payload), (payload[:5], b"", payload[5:]))
        for record in (deflated, stored, raw):
            writer.copy(record, record.name)
        writer.close()
    _assert_sound(target)
    with zipfile.ZipFile(target) as archive:
        names = ["é/added", "empty", "streamed", "deflated", "stored", "raw"]
        assert archive.namelist() == names
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        for name in names:
            assert archive.read(name) == (b"" if name == "empty" else payload)
    assert all(record.offset % 64 == 0 for record in read_directory(target).records())


@pytest.mark.parametrize("size", [10, LARGE])
def test_a_copy_keeps_the_checksum_of_what_is_damaged(tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "source.zip", tmp_path / "target.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("a", bytes(size))
    (record,) = read_directory(source).records()
    with source.open("r+b") as stream:
        stream.seek(record.offset)
        stream.write(b"damage")
    _rewrite(source, target)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() == "a"


def test_a_pipe_and_memory_will_do(weights: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.pt"
    _rewrite(weights, target)
    memory = io.BytesIO()
    reading, writing = os.pipe()
    received: list[bytes] = []

    def drain() -> None:
        with os.fdopen(reading, "rb") as stream:
            received.append(stream.read())

    thread = threading.Thread(target=drain)
    thread.start()
    for stream in (memory, os.fdopen(writing, "wb")):
        writer = ZipWriter(stream)
        for record in read_directory(weights).records():
            writer.copy(record, record.name)
        writer.close()
        if stream is not memory:
            stream.close()
    thread.join()
    assert memory.getvalue() == target.read_bytes()
    assert received == [target.read_bytes()]


def test_more_records_than_16_bits_count(tmp_path: Path) -> None:
    target = tmp_path / "many.zip"
    with target.open("wb") as stream:
        writer = ZipWriter(stream)
        for index in range(65_600):
            writer.add(str(index), b"")
        writer.close()
    _assert_sound(target)
    assert len(read_directory(target).entries) == 65_600


class _Sparse(io.RawIOBase):
    """Takes zeros without storing them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        assert isinstance(data, bytes)
        if data.count(0) == len(data):
            self._file.seek(len(data), os.SEEK_CUR)
        else:
            self._file.write(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def test_sizes_and_offsets_beyond_32_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "crc32", lambda data, value=0: 1)  # 4 GB of zeros take a second
    target = tmp_path / "large.zip"
    zeros = bytes(1 << 24)
    stream = _Sparse(target)
    writer = ZipWriter(stream)  # type: ignore[arg-type]
    writer.add("before", b"1")
    writer.add_stream("wide", 1 << 32, (zeros for _ in range(256)))
    writer.add("after", b"after")
    writer.close()
    stream.close()
    directory = read_directory(target)
    assert directory.warnings == ()
    assert consistency(directory) == ()
    assert [record.size_bytes for record in directory.records()] == [1, 1 << 32, 5]
    assert all(record.offset % 64 == 0 for record in directory.records())
    monkeypatch.undo()
    with zipfile.ZipFile(target) as archive:
        assert archive.getinfo("wide").file_size == 1 << 32
        info = archive.getinfo("after")
        assert info.header_offset > 1 << 32
        with target.open("rb") as file:
            file.seek(directory.records()[2].offset)
            assert file.read(5) == b"after"


@pytest.mark.parametrize("parts", [(b"12",), (b"12", b"34"), ()])
def test_streams_of_another_length(parts: tuple[bytes, ...]) -> None:
    writer = ZipWriter(io.BytesIO())
    with pytest.raises(InputError, match="is not of the 3 bytes announced"):
        writer.add_stream("a", 3, parts)


def test_names_that_no_zip_should_have() -> None:
    writer = ZipWriter(io.BytesIO())
    writer.add("a", b"")
    with pytest.raises(InputError, match="two records of this name"):
        writer.add("a", b"")
    with pytest.raises(InputError, match="is too long"):
        writer.add("é" * 40_000, b"")


@pytest.mark.parametrize("size", [10, LARGE])
def test_a_source_that_ends_early(tmp_path: Path, size: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(size))
    with (tmp_path / "target").open("wb") as stream, pytest.raises(InputError, match="cut short"):
        ZipWriter(stream).copy(Record("a", source, 1, size, size), "a")


Copy = Callable[..., int]


def _fails(number: int) -> Copy:
    def fail(*args: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def _moves_little(move: Copy, count_at: int) -> Copy:
    def limited(*args: int) -> int:
        shorter = list(args)
        shorter[count_at] = min(args[count_at], 1000)
        return move(*shorter)

    return limited


def _stops(*args: object) -> int:
    return 0


KERNEL = {
    "as it is": None,
    "other device": _fails(errno.EXDEV),
    "not here": _fails(errno.ENOSYS),
    "not this file": _fails(errno.EINVAL),
    "not supported": _fails(errno.EOPNOTSUPP),
    "pretends an end": _stops,
    "in small parts": _moves_little(os.copy_file_range, 2),
}
SENDFILE = {
    "as it is": None,
    "not this file": _fails(errno.EINVAL),
    "in small parts": _moves_little(os.sendfile, 3),
}


@pytest.mark.parametrize("kernel", KERNEL)
@pytest.mark.parametrize("sendfile", SENDFILE)
def test_every_way_to_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, sendfile: str
) -> None:
    for name, replaced in (("copy_file_range", KERNEL[kernel]), ("sendfile", SENDFILE[sendfile])):
        if replaced is not None:
            monkeypatch.setattr(os, name, replaced)
    source, target = tmp_path / "source", tmp_path / "target"
    content = os.urandom(20_000)
    source.write_bytes(content)
    target.write_bytes(b"x" * 30_000)
    with source.open("rb") as reader, target.open("r+b") as writer:
        copy_range(reader.fileno(), writer.fileno(), 100, 7, 19_000)
        with pytest.raises(InputError, match="weights: ends 5 bytes early"):
            copy_range(reader.fileno(), writer.fileno(), 19_995, 20_000, 10, name="weights")
    written = target.read_bytes()
    assert written[:7] == b"x" * 7
    assert written[7:19_007] == content[100:19_100]
    assert written[19_007:20_000] == b"x" * 993
    assert len(written) == 30_000


def test_a_full_disk_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", _fails(errno.ENOSPC))
    (tmp_path / "source").write_bytes(b"content")
    with (
        (tmp_path / "source").open("rb") as reader,
        (tmp_path / "target").open("wb") as writer,
        pytest.raises(OSError, match="No space left") as caught,
    ):
        copy_range(reader.fileno(), writer.fileno(), 0, 0, 7)
    assert caught.value.errno == errno.ENOSPC


def test_checksums_are_those_of_the_bytes(tmp_path: Path) -> None:
    target = tmp_path / "file.zip"
    with target.open("wb") as stream:
        writer = ZipWriter(stream)
        writer.add("a", b"content")
        writer.close()
    assert read_directory(target).entries[0].crc32 == zlib.crc32(b"content")
