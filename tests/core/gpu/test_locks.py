"""Booking GPUs: who has the lock has the GPU, for as long as the job or its children live."""

import contextlib
import os
import signal
import stat
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pttool.core.gpu import locks
from pttool.core.gpu.locks import book, lock_path, picking_lock
from pttool.errors import UnavailableError
from tests.fakes.processes import as_nobody, needs_root


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for locks as /tmp is."""
    shared = tmp_path / "locks"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(locks, "FOLDERS", (tmp_path / "absent", tmp_path, shared))
    return shared


@pytest.fixture
def unheard_of() -> Iterator[str]:
    """The UUID of a GPU that no other test on this host has, booked in the host's own folder."""
    name = f"GPU-{uuid.uuid4()}"
    yield name
    lock_path(name).unlink()


@pytest.mark.usefixtures("folder")
def test_a_gpu_is_booked_once_and_all_or_none() -> None:
    first = book(["GPU-a", "GPU-b", "GPU-c"], 2)
    assert first is not None
    assert first.uuids == ("GPU-a", "GPU-b")
    assert book(["GPU-a", "GPU-b", "GPU-c"], 2) is None
    second = book(["GPU-a", "GPU-b", "GPU-c"], 1)  # what the failed one took was given back
    assert second is not None
    assert second.uuids == ("GPU-c",)
    first.release()
    again = book(["GPU-b", "GPU-c"], 1)
    assert again is not None
    assert again.uuids == ("GPU-b",)
    for booking in (second, again):
        booking.release()


@pytest.mark.usefixtures("folder")
def test_a_lock_lasts_over_exec_and_dies_with_the_job() -> None:
    job = os.fork()
    if job == 0:
        booking = book(["GPU-a"], 1)
        if booking is not None:
            booking.keep_over_exec()
            os.execvp("sleep", ["sleep", "3600"])
        os._exit(1)
    while Path(f"/proc/{job}/comm").read_text() != "sleep\n":
        time.sleep(0.01)
    assert book(["GPU-a"], 1) is None
    os.kill(job, signal.SIGKILL)
    os.waitpid(job, 0)
    booking = book(["GPU-a"], 1)
    assert booking is not None
    booking.release()


@pytest.mark.usefixtures("folder")
def test_a_lock_is_not_kept_by_what_is_started_before_the_job() -> None:
    booking = book(["GPU-a"], 1)
    assert booking is not None
    with subprocess.Popen(["sleep", "3600"], close_fds=False) as started:
        booking.release()
        again = book(["GPU-a"], 1)
        started.kill()
    assert again is not None
    again.release()


@needs_root
@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_another_user_sees_the_lock_and_can_not_remove_it(unheard_of: str, umask: int) -> None:
    before = os.umask(umask)
    booking = book([unheard_of], 1)
    os.umask(before)
    assert booking is not None
    path = lock_path(unheard_of)
    # The sticky bit of a file keeps systemd-tmpfiles away from it.
    assert stat.S_IMODE(path.stat().st_mode) == 0o1644
    assert as_nobody(lambda: book([unheard_of], 1)) == b"None"
    assert as_nobody(lambda: _refused(path)) == b"'PermissionError'"
    booking.release()
    assert unheard_of.encode() in as_nobody(lambda: book([unheard_of], 1))


@pytest.mark.usefixtures("folder")
def test_a_lock_file_that_was_removed_is_no_lock() -> None:
    booking = book(["GPU-a"], 1)
    assert booking is not None
    lock_path("GPU-a").unlink()
    other = book(["GPU-a"], 1)
    assert other is not None
    assert book(["GPU-a"], 1) is None
    booking.release()
    assert book(["GPU-a"], 1) is None
    other.release()


def test_what_lies_in_the_place_of_a_lock_is_not_touched(folder: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    lock_path("GPU-a").symlink_to(precious)
    with pytest.raises(UnavailableError, match="GPU-a"):
        book(["GPU-a"], 1)
    os.mkfifo(lock_path("GPU-b"))
    with pytest.raises(UnavailableError, match="no regular file"):
        book(["GPU-b"], 1)
    assert precious.read_text() == "kept"
    assert lock_path("../../etc/GPU").parent == folder


def test_without_a_folder_for_all_users_nothing_is_booked(folder: Path) -> None:
    folder.chmod(0o755)
    with pytest.raises(UnavailableError, match="no safe folder"):
        book(["GPU-a"], 1)


@pytest.mark.usefixtures("folder")
def test_one_process_picks_at_a_time() -> None:
    with picking_lock(None) as is_first:
        assert is_first
        with picking_lock(time.monotonic()) as is_second:
            assert not is_second
    with picking_lock(time.monotonic()) as is_next:
        assert is_next


@pytest.mark.usefixtures("folder")
def test_a_hundred_processes_never_share_a_gpu(tmp_path: Path) -> None:
    uuids = [f"GPU-{number}" for number in range(8)]
    with _started(100, uuids, tmp_path) as jobs:
        codes = [os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) for job in jobs]
    assert codes == [0] * 100


@contextlib.contextmanager
def _started(count: int, uuids: list[str], folder: Path) -> Iterator[list[int]]:
    """Fork jobs that book two GPUs and make a folder for each: a second maker would fail."""
    jobs: list[int] = []
    for _ in range(count):
        job = os.fork()
        if job == 0:
            os._exit(_work(uuids, folder))
        jobs.append(job)
    yield jobs


def _work(uuids: list[str], folder: Path) -> int:
    while True:
        with picking_lock(None):
            booking = book(uuids, 2)
        if booking is not None:
            break
        time.sleep(0.005)
    try:
        for name in booking.uuids:
            (folder / name).mkdir()
        time.sleep(0.01)
        for name in booking.uuids:
            (folder / name).rmdir()
    except OSError:
        return 1
    return 0


def _refused(path: Path) -> str:
    try:
        path.unlink()
    except OSError as error:
        return type(error).__name__
    return "removed"
