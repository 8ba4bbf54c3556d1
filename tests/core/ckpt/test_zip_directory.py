"""The directory of a zip against zipfile and torch, and against zips that lie."""

import contextlib
import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pttool.core.ckpt.files.payload import crc32, read_record
from pttool.core.ckpt.zips import layout as fmt
from pttool.core.ckpt.zips.consistency import consistency
from pttool.core.ckpt.zips.directory import Directory, read_directory
from pttool.errors import InputError

Write = Callable[[zipfile.ZipFile], None]


def _plain(archive: zipfile.ZipFile) -> None:
    archive.writestr("a/data.pkl", b"pickle")
    archive.writestr("a/data/0", bytes(range(100)))
    archive.writestr("a/empty", b"")
    archive.writestr("a/é", b"name")


def _wide(archive: zipfile.ZipFile) -> None:
    with archive.open("a/wide", "w", force_zip64=True) as member:
        member.write(b"wide")


class _Unseekable(io.RawIOBase):
    """As a pipe: it makes zipfile write data descriptors."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        block = bytes(data)  # type: ignore[call-overload]
        self.data += block
        return len(block)


def zip_bytes(write: Write = _plain, method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip that zipfile writes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        write(archive)
    return stream.getvalue()


def streamed_zip_bytes(write: Write = _plain, method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip with data descriptors that zipfile writes."""
    stream = _Unseekable()
    with zipfile.ZipFile(stream, "w", method) as archive:
        write(archive)
    return bytes(stream.data)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[bytes], Directory]:
    """Write bytes to a file and read it as a zip."""

    def open_(data: bytes) -> Directory:
        path = tmp_path / "file.zip"
        path.write_bytes(data)
        return read_directory(path)

    return open_


def _read_everything(path: Path) -> None:
    directory = read_directory(path)
    consistency(directory)
    for record in directory.records():
        with contextlib.suppress(InputError):
            crc32(record)
        read_record(record, 1 << 16)


def _assert_as_zipfile(path: Path) -> None:
    directory = read_directory(path)
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        assert [entry.name for entry in directory.entries] == [info.filename for info in infos]
        for entry, record, info in zip(directory.entries, directory.records(), infos, strict=True):
            assert entry == directory.find(info.filename)
            assert record == directory.record(entry)
            assert entry.header_offset == info.header_offset
            assert (entry.flags, entry.method) == (info.flag_bits, info.compress_type)
            assert (record.size_bytes, record.stored_bytes) == (info.file_size, info.compress_size)
            assert record.crc32 == info.CRC == crc32(record)
            assert read_record(record, 1 << 20) == archive.read(info)


@pytest.mark.parametrize("make", [zip_bytes, streamed_zip_bytes])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("write", [_plain, _wide])
def test_what_zipfile_writes(
    tmp_path: Path, make: Callable[[Write, int], bytes], method: int, write: Write
) -> None:
    path = tmp_path / "file.zip"
    path.write_bytes(make(write, method))
    _assert_as_zipfile(path)
    directory = read_directory(path)
    assert directory.warnings == ()
    assert consistency(directory) == ()


def test_what_torch_writes(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"a": torch.arange(10), "b": torch.zeros(0), "c": torch.ones(3000)}, path)
    _assert_as_zipfile(path)
    directory = read_directory(path)
    assert directory.warnings == ()
    assert consistency(directory) == ()
    reader = torch._C.PyTorchFileReader(str(path))
    for record in directory.records():
        inner = record.name.partition("/")[2]
        assert record.offset == reader.get_record_offset(inner)  # type: ignore[attr-defined]
        assert record.offset % 64 == 0


def test_a_zip_within_a_file(tmp_path: Path) -> None:
    """As a chunk of a distributed checkpoint: its offsets are those of the file."""
    alone, inside = tmp_path / "alone.pt", tmp_path / "inside"
    torch.save({"a": torch.arange(1000), "b": torch.ones(3)}, alone)
    before, after = b"PK\3\4before", zip_bytes()
    inside.write_bytes(before + alone.read_bytes() + after)
    found = read_directory(inside, len(before), alone.stat().st_size)
    whole = read_directory(alone)
    assert found.warnings == whole.warnings == consistency(found) == ()
    for one, other in zip(found.records(), whole.records(), strict=True):
        assert one == replace(other, file=inside, offset=other.offset + len(before))
        assert crc32(one) == one.crc32


def test_torch_without_checksums_has_none(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(3), path)
    finally:
        torch.serialization.set_crc32_options(True)
    directory = read_directory(path)
    assert not directory.has_checksums
    assert {record.crc32 for record in directory.records()} == {None}
    assert consistency(directory) == ()


def test_a_zip_without_records(opened: Callable[[bytes], Directory]) -> None:
    directory = opened(zip_bytes(lambda archive: None))
    assert (directory.size_bytes, directory.entries, directory.warnings) == (22, (), ())
    assert consistency(directory) == ()
    assert directory.find("a") is None


def test_offsets_beyond_32_bits(tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    with path.open("wb") as stream:
        stream.truncate(5 << 30)
    with zipfile.ZipFile(path, "a") as archive:
        _plain(archive)
    _assert_as_zipfile(path)
    directory = read_directory(path)
    assert directory.entries[0].header_offset == 5 << 30
    assert directory.warnings == (f"{5 << 30} bytes before the first record",)


@pytest.mark.parametrize("make", [zip_bytes, streamed_zip_bytes])
def test_cut_anywhere_it_is_refused(
    opened: Callable[[bytes], Directory], make: Callable[[], bytes]
) -> None:
    whole = make()
    for size in range(len(whole)):
        with pytest.raises(InputError):
            opened(whole[:size])


def test_a_cut_zip_is_told_from_what_is_none(opened: Callable[[bytes], Directory]) -> None:
    with pytest.raises(InputError, match=r"end record is missing \(50 bytes here\)") as caught:
        opened(zip_bytes()[:50])
    assert caught.value.hint == "copy or download it again"
    for data in (b"", b"\x80\x02}.", bytes(1000)):
        with pytest.raises(InputError, match="is not a zip"):
            opened(data)


@pytest.mark.parametrize("name", ["missing.zip", "a\0b", "."])
def test_no_file_to_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        read_directory(tmp_path / name)


def _end64(count: int, length: int, offset: int) -> bytes:
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, offset)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    return (
        end + locator + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[0xFFFF] * 2, *[2**32 - 1] * 2, 0)
    )


@pytest.mark.parametrize(
    ("count", "length", "offset"),
    [
        (2**64 - 1, 0, 0),
        (1, 2**40, 0),
        (0, 2**64 - 1, 2**64 - 1),
        (2**64 - 1, 2**64 - 1, 0),
        (1, 0, 2**40),
    ],
)
def test_claims_of_the_end_record(
    opened: Callable[[bytes], Directory], count: int, length: int, offset: int
) -> None:
    with pytest.raises(InputError, match="the zip says"):
        opened(_end64(count, length, offset))


def test_more_records_than_a_checkpoint_needs(tmp_path: Path) -> None:
    path = tmp_path / "wide.zip"
    count = 300_001
    with path.open("wb") as stream:
        stream.truncate(count * 46)
        stream.seek(count * 46)
        end = bytearray(_end64(count, count * 46, 0))
        end[64:72] = struct.pack("<Q", count * 46)
        stream.write(end)
    with pytest.raises(InputError, match="more than a checkpoint can need"):
        read_directory(path)


def _central(data: bytes, index: int = 0) -> int:
    at = -1
    for _ in range(index + 1):
        at = data.index(b"PK\1\2", at + 1)
    return at


def _with(data: bytes, offset: int, content: bytes) -> bytes:
    return data[:offset] + content + data[offset + len(content) :]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (42, 2**31, "claims 6 bytes at"),
        (20, 2**31, "claims 2147483648 bytes"),
        (42, 46, "overlap"),
        (20, 60, "overlap"),
        (28, 0xFFFF, "breaks in record 1 of 4"),
        (0, 0, "breaks after 0 of 4"),
    ],
)
def test_claims_of_a_record(
    opened: Callable[[bytes], Directory], field: int, value: int, words: str
) -> None:
    data = zip_bytes()
    form = "<H" if field == 28 else "<L"
    with pytest.raises(InputError, match=words):
        opened(_with(data, _central(data) + field, struct.pack(form, value)))


def test_a_local_header_that_is_elsewhere(opened: Callable[[bytes], Directory]) -> None:
    directory = opened(_with(zip_bytes(), 0, b"PK\0\0"))
    assert directory.find("a/data.pkl") is not None
    with pytest.raises(InputError, match="not where the zip's directory says"):
        directory.record(directory.entries[0])
    assert "'a/data.pkl': no usable local header" in consistency(directory)


def _twice(archive: zipfile.ZipFile) -> None:
    archive.writestr("a/data.pkl", b"1")
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("a/data.pkl", b"2")


def _named(*names: str) -> Write:
    def write(archive: zipfile.ZipFile) -> None:
        for name in names:
            archive.writestr(name, b"1")

    return write


def _commented(archive: zipfile.ZipFile) -> None:
    _plain(archive)
    archive.comment = b"hello"


def _oddities() -> Iterator[tuple[bytes, str]]:
    plain = zip_bytes()
    flags, method, size = (_central(plain) + field for field in (8, 10, 24))
    end = plain.rindex(b"PK\5\6")
    yield zip_bytes(_twice), "'a/data.pkl': more than one record of this name"
    both = "'a/data.pkl', 'a/DATA.pkl': more than one record of this name"
    yield zip_bytes(_named("a/data.pkl", "a/DATA.pkl")), both
    for name in ("../x", "a/../x", "/x", "a/..", "C:/x", "a\\x", "a\nx"):
        yield zip_bytes(_named(name)), f"{name!r}: an unsafe name"
    yield (
        zip_bytes(_named(*(f"/{i}" for i in range(9)))),
        "'/0', '/1', '/2' and 6 more: an unsafe name",
    )
    yield _with(plain, flags, b"\1\0"), "'a/data.pkl': flagged as encrypted"
    yield _with(plain, method, b"\x0c\0"), "'a/data.pkl': compressed by an unknown method"
    yield _with(plain, size, b"\7\0\0\0"), "'a/data.pkl': stored as it is, but with two sizes"
    yield zip_bytes(_commented), "a comment of 5 bytes"
    yield plain + b"more", "4 bytes after the end record"
    yield _with(plain, end + 4, b"\1\0"), "it is one part of a zip in several files"
    yield plain[:end] + b"hidden" + plain[end:], "6 bytes between the directory and the end record"
    fewer = _with(_with(plain, end + 8, b"\3\0"), end + 10, b"\3\0")
    yield fewer, "50 bytes of the directory belong to no record"
    wide = _end64(0, 0, 0)
    yield _with(wide, len(wide) - 22 + 8, b"\1\0\1\0"), "its two end records contradict each other"


@pytest.mark.parametrize(
    ("data", "words"), [pytest.param(*case, id=case[1]) for case in _oddities()]
)
def test_oddities_are_said(opened: Callable[[bytes], Directory], data: bytes, words: str) -> None:
    assert words in opened(data).warnings


def test_names_that_are_no_utf8(opened: Callable[[bytes], Directory]) -> None:
    data = zip_bytes(_named("a/xy")).replace(b"a/xy", b"a/\xff\x81")
    assert opened(data).entries[0].name == b"a/\xff\x81".decode("cp437")


@pytest.mark.parametrize(
    ("field", "content", "words"),
    [
        (30, b"b", "the local header has another name"),
        (6, b"\1\0", "the local header has other flags"),
        (8, b"\x08", "the local header has another method"),
        (14, b"\1\1", "the local header has another checksum"),
        (18, b"\7", "the local header has another stored size"),
        (22, b"\7", "the local header has another size"),
        (6, b"\x08", "the data descriptor is missing or contradicts the directory"),
        (28, b"\1", "overlaps the record before it"),
    ],
)
def test_local_headers_are_compared(
    opened: Callable[[bytes], Directory], field: int, content: bytes, words: str
) -> None:
    found = consistency(opened(_with(zip_bytes(), field, content)))
    named = "'a/data/0'" if field == 28 else "'a/data.pkl'"
    assert f"{named}: {words}" in found


def test_a_descriptor_is_compared(opened: Callable[[bytes], Directory]) -> None:
    data = streamed_zip_bytes()
    at = data.index(fmt.DESCRIPTOR_SIGNATURE)
    assert "'a/data.pkl': the data descriptor is missing or contradicts the directory" in (
        consistency(opened(_with(data, at + 4, b"\0")))
    )


def test_bytes_of_no_record_are_found(opened: Callable[[bytes], Directory]) -> None:
    data = bytearray(zip_bytes())
    first = _central(bytes(data))
    # The last record is made to end 4 bytes earlier.
    central, local = _central(bytes(data), 3), bytes(data).rindex(b"PK\3\4")
    for at in (central + 20, central + 24, local + 18, local + 22):
        data[at : at + 4] = bytes(4)
    assert consistency(opened(bytes(data))) == (f"4 bytes at {first - 4} belong to no record",)


@given(
    st.sampled_from([zip_bytes(), streamed_zip_bytes(), zip_bytes(_wide, zipfile.ZIP_DEFLATED)]),
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=6),
)
@settings(derandomize=True, max_examples=1500, deadline=None)
def test_mutated_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, changes: list[tuple[int, int]]
) -> None:
    mutated = bytearray(data)
    for at, value in changes:
        mutated[at % len(mutated)] = value
    path = tmp_path_factory.getbasetemp() / "mutated.zip"
    path.write_bytes(mutated)
    with contextlib.suppress(InputError):
        _read_everything(path)
