"""Patches: in place they survive a kill at any step, in a copy they are all that differs."""

import errno
import fcntl
import io
import os
import struct
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pttool.core.ckpt.files import journal as journals
from pttool.core.ckpt.files.journal import Change, Journal, journal_path
from pttool.core.ckpt.files.patching import (
    Patch,
    apply_in_place,
    patched_copy,
    recover,
)
from pttool.core.ckpt.zips.consistency import consistency
from pttool.core.ckpt.zips.directory import read_directory
from pttool.core.ckpt.zips.patching import zip_patches
from pttool.errors import InputError, UnavailableError

OLD = bytes(range(256)) * 40
PATCHES = (Patch(5000, b"second" * 100), Patch(3, b"first"), Patch(10_239, b"!"))
NEW = OLD[:3] + b"first" + OLD[8:5000] + b"second" * 100 + OLD[5600:10_239] + b"!"

# Runs apply_in_place and dies in the call of the operating system whose number is given.
KILLED = """
import os, sys
from pathlib import Path
from pttool.core.ckpt.files.patching import Patch, apply_in_place

path, last = Path(sys.argv[1]), int(sys.argv[2])
patches = [Patch(int(offset), bytes.fromhex(content)) for offset, content in
           (given.split(":") for given in sys.argv[3:])]
calls = 0

def counting(name, real):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == last:
            if name == "pwrite":
                file, content, offset = args
                real(file, bytes(content)[:len(content) // 2], offset)
            os._exit(9)
        return real(*args, **kwargs)
    return call

for name in ("open", "close", "pwrite", "fsync", "unlink"):
    setattr(os, name, counting(name, getattr(os, name)))
apply_in_place(path, patches)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "weights.pt"
    path.write_bytes(OLD)
    return path


def _alone(path: Path) -> bool:
    return [other.name for other in path.parent.iterdir()] == [path.name]


def test_bytes_change_and_nothing_else_does(path: Path) -> None:
    path.chmod(0o640)
    inode = path.stat().st_ino
    apply_in_place(path, PATCHES)
    assert path.read_bytes() == NEW
    assert (path.stat().st_ino, path.stat().st_mode & 0o777) == (inode, 0o640)
    assert _alone(path)
    assert not recover(path)


def test_killed_at_any_step_it_is_old_or_new(path: Path) -> None:
    given = [f"{patch.offset}:{patch.content.hex()}" for patch in PATCHES]
    outcomes = []
    for step in range(1, 100):
        path.write_bytes(OLD)
        child = [sys.executable, "-c", KILLED, str(path), str(step), *given]
        code = subprocess.run(child, check=False).returncode
        if code == 0:
            break
        assert code == 9
        left = {other: other.read_bytes() for other in path.parent.iterdir()}
        was_restored = recover(path)
        assert path.read_bytes() in (OLD, NEW)
        assert _alone(path)
        outcomes.append((was_restored, path.read_bytes() == NEW))
        # Where the next run, instead, begins with the same file:
        for name, content in left.items():
            name.write_bytes(content)
        apply_in_place(path, PATCHES)
        assert path.read_bytes() == NEW
        assert _alone(path)
    assert {(False, False), (True, False), (False, True)} == set(outcomes)
    assert outcomes == sorted(outcomes, key=lambda pair: (pair[1], pair[0]))


def _failing(times: int, real: Callable[..., int], error: BaseException) -> Callable[..., int]:
    calls = 0

    def call(*args: object) -> int:
        nonlocal calls
        calls += 1
        if calls == times:
            raise error
        return real(*args)

    return call


@pytest.mark.parametrize("name", ["pwrite", "fsync"])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int, number: int
) -> None:
    error = OSError(number, os.strerror(number))
    monkeypatch.setattr(os, name, _failing(call, getattr(os, name), error))
    with pytest.raises(UnavailableError, match="can't be changed in place"):
        apply_in_place(path, PATCHES)
    monkeypatch.undo()
    is_done = (name, call) == ("fsync", 4)  # only the folder's entry of the journal wasn't synced
    assert path.read_bytes() == (NEW if is_done else OLD)
    assert _alone(path)


def test_an_interrupt_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", _failing(3, os.pwrite, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        apply_in_place(path, PATCHES)
    assert path.read_bytes() == OLD
    assert _alone(path)


def test_two_at_once(path: Path) -> None:
    journal_path(path).write_bytes(b"")
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for change in (lambda: apply_in_place(path, PATCHES), lambda: recover(path)):
            with pytest.raises(UnavailableError, match="another process is changing it"):
                change()
    assert path.read_bytes() == OLD
    assert not recover(path)
    apply_in_place(path, PATCHES)


def test_without_permission(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = PermissionError(errno.EACCES, "Permission denied")
    for call in (1, 2):  # the file, the journal
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", _failing(call, os.open, error))
            with pytest.raises(UnavailableError, match="Permission denied"):
                apply_in_place(path, PATCHES)
        assert path.read_bytes() == OLD


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("missing", "pipe", ".", "loop", "a\0b"):
        with pytest.raises(InputError):
            apply_in_place(tmp_path / name, PATCHES)


def test_patches_that_do_not_fit(path: Path) -> None:
    with pytest.raises(InputError, match="reaches to 10241"):
        apply_in_place(path, [Patch(10_239, b"12")])
    for offsets in ((3, 4), (3, 3), (-1, 5)):
        with pytest.raises(ValueError, match="patches overlap"):
            apply_in_place(path, [Patch(offset, b"12") for offset in offsets])
    apply_in_place(path, [Patch(0, OLD[:9])])
    assert path.read_bytes() == OLD
    assert _alone(path)


def _journal(size: int = len(OLD)) -> bytes:
    changes = tuple(
        Change(patch.offset, OLD[patch.offset :][: len(patch.content)], patch.content)
        for patch in PATCHES
    )
    return journals.encode(Journal(size, changes))


def test_an_incomplete_journal_is_only_removed(path: Path) -> None:
    whole = _journal()
    for count in (0, 1, 16, 40, 400, len(whole) - 1):
        for data in (whole[:count], whole[:count].ljust(len(whole), b"\0")):
            journal_path(path).write_bytes(data)
            assert not recover(path)
            assert path.read_bytes() == OLD
            assert _alone(path)


@pytest.mark.parametrize("state", ["another file", "another size"])
def test_a_journal_of_another_file_is_not_used(path: Path, state: str) -> None:
    content = OLD + b"more" if state == "another size" else bytes(len(OLD))
    path.write_bytes(content)
    journal_path(path).write_bytes(_journal())
    for change in (lambda: apply_in_place(path, PATCHES), lambda: recover(path)):
        with pytest.raises(InputError, match="is of another state of this file") as caught:
            change()
        assert caught.value.hint is not None
        assert str(journal_path(path)) in caught.value.hint
    assert path.read_bytes() == content
    assert journal_path(path).exists()


def test_a_journal_that_is_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(_journal())
    journal_path(path).symlink_to("elsewhere")
    with pytest.raises(InputError, match="is a link"):
        recover(path)


def test_a_link_to_the_file_finds_its_journal(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "link.pt"
    link.parent.mkdir()
    link.symlink_to(path)
    path.write_bytes(NEW[:6000] + OLD[6000:])
    journal_path(path).write_bytes(_journal())
    assert recover(link)
    assert path.read_bytes() == OLD
    apply_in_place(link, PATCHES)
    assert path.read_bytes() == NEW
    assert link.is_symlink()


@given(st.lists(st.tuples(st.integers(0, 2**63), st.binary(max_size=9)), max_size=5), st.binary())
def test_journals_come_back_and_damaged_ones_do_not(
    places: list[tuple[int, bytes]], noise: bytes
) -> None:
    changes = tuple(Change(offset, content, content[::-1]) for offset, content in places)
    data = journals.encode(Journal(7, changes))
    assert journals.decode(data) == Journal(7, changes)
    for damaged in (data + b"\0", data[:-1], b"P" + data[1:], noise):
        assert journals.decode(damaged) is None


def test_journals_with_a_right_checksum_can_lie() -> None:
    for body in (
        struct.pack("<16s2Q", journals.MAGIC, 1, 2**64 - 1),
        struct.pack("<16s4Q", journals.MAGIC, 1, 1, 0, 2**63),
        struct.pack("<16s2Q", b"another", 1, 0),
    ):
        assert journals.decode(body + struct.pack("<L", zlib.crc32(body))) is None


def test_a_patched_copy(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.pt"
    patched_copy(path, target, PATCHES)
    assert target.read_bytes() == NEW
    assert path.read_bytes() == OLD
    target.chmod(0o600)
    patched_copy(path, target, ())
    assert target.read_bytes() == OLD
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_patched_copy_through_a_pipe(path: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    thread = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    thread.start()
    patched_copy(path, pipe, PATCHES)
    thread.join()
    assert received == [NEW]


def test_a_patched_copy_fails_whole(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.pt"
    with pytest.raises(InputError, match="reaches to"):
        patched_copy(path, target, [Patch(len(OLD), b"1")])
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "pwrite", _failing(1, os.pwrite, full))
    with pytest.raises(UnavailableError, match=r"copy\.pt: No space left on device"):
        patched_copy(path, target, PATCHES)
    assert _alone(path)


def _zipfile(stream: object) -> None:
    with zipfile.ZipFile(stream, "w") as archive:  # type: ignore[call-overload]
        archive.writestr("first", b"first")
        archive.writestr("a/data.pkl", b"pickle")


def _stored(path: Path) -> None:
    _zipfile(path)


def _streamed(path: Path) -> None:
    with path.open("wb") as stream:
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as pipe:
            _zipfile(pipe)
        with os.fdopen(reading, "rb") as pipe:
            stream.write(pipe.read())


def _described(descriptor: bytes, local_crc: int = 0) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        crc, name = zlib.crc32(b"pickle"), b"a/data.pkl"
        tail = (6, 6, len(name), 0)
        local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 8, 0, 0, 33, local_crc, *tail) + name
        body = local + b"pickle" + descriptor
        central = struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 20, 20, 8, 0, 0, 33, crc, *tail, 0, 0, 0, 0, 0
        )
        central += name
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(central), len(body), 0)
        path.write_bytes(body + central + end)

    return write


def _torch(path: Path) -> None:
    torch.save({"a": torch.ones(3)}, path)


CRC = struct.pack("<L", zlib.crc32(b"pickle"))
NARROW, WIDE = struct.pack("<2L", 6, 6), struct.pack("<2Q", 6, 6)
WRITERS = {
    "stored": _stored,
    "streamed": _streamed,
    "torch": _torch,
    "signed": _described(b"PK\7\x08" + CRC + NARROW),
    "signed, 64 bits": _described(b"PK\7\x08" + CRC + WIDE),
    "unsigned": _described(CRC + NARROW),
    "unsigned, 64 bits": _described(CRC + WIDE),
    "known before": _described(CRC + NARROW, zlib.crc32(b"pickle")),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_payload_is_replaced_with_its_checksums(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "file.zip"
    WRITERS[writer](path)
    directory = read_directory(path)
    assert consistency(directory) == ()
    entry = next(entry for entry in directory.entries if entry.name.endswith("/data.pkl"))
    payload = os.urandom(entry.size_bytes)
    patches = zip_patches(directory, entry, payload)
    before = path.read_bytes()
    apply_in_place(path, patches)
    assert consistency(read_directory(path)) == ()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read(entry.name) == payload
    differing = sum(old != new for old, new in zip(before, path.read_bytes(), strict=True))
    assert differing <= len(payload) + 4 * (len(patches) - 1)


def test_what_can_not_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file.zip"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"pickle")
    path.write_bytes(stream.getvalue())
    directory = read_directory(path)
    with pytest.raises(InputError, match="'a' is compressed"):
        zip_patches(directory, directory.entries[0], b"pickle")
    for write, words in (
        (_described(b""), "has no data descriptor"),
        (_described(CRC + NARROW, 5), "has two checksums"),
    ):
        write(path)
        directory = read_directory(path)
        with pytest.raises(InputError, match=words):
            zip_patches(directory, directory.entries[0], b"PICKLE")
    with pytest.raises(ValueError, match="holds 6 bytes, not 5"):
        zip_patches(directory, directory.entries[0], b"12345")
