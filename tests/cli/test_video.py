"""`pttool video` as users run it: a batch that is killed, interrupted, resumed, shuffled."""

import contextlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PTTOOL, Completed, Pttool, assert_refused
from tests.core.video.encoding import Film, encode

BATCH = 24
DEADLINE_S = 60


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """Make a folder of videos, one of which is none, and return their names."""
    (tmp_path / "many").mkdir()
    first = tmp_path / "many" / "00.mp4"
    encode(first, Film(size=(320, 240)))
    names = [f"many/{number:02}.mp4" for number in range(BATCH)]
    for name in names[1:]:
        os.link(first, tmp_path / name)
    (tmp_path / "many" / "bad.mp4").write_text("<html>")
    return [*names, "many/bad.mp4"]


def _command(names: list[str], *options: str) -> list[str]:
    return ["video", "sample-tsn", *names, "--mode", "train", "-o", "out", *options]


def _json(done: Completed, code: int = 0) -> dict[str, Any]:
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@contextlib.contextmanager
def _running(
    folder: Path, environment: Mapping[str, str], args: list[str]
) -> Iterator["subprocess.Popen[str]"]:
    """Run pttool, and yield the process once a few videos are done."""
    with subprocess.Popen(
        [PTTOOL, *args],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + DEADLINE_S
        while len(list(folder.glob("out/many/*"))) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        yield process


def _frames(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jpg")}


def _alive_in_session(leader: int) -> list[int]:
    """Return the processes of a session that are not just waited for."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


def test_one_manifest_whatever_the_order_the_workers_and_the_interruptions(
    many: list[str], tmp_path: Path, pttool: Pttool, environment: dict[str, str]
) -> None:
    done = pttool(*_command(many, "--manifest", "1.jsonl"))
    assert done.returncode == 3
    assert "many/bad.mp4" in done.stderr
    manifest, frames = (tmp_path / "1.jsonl").read_bytes(), _frames(tmp_path / "out")
    assert len(manifest.splitlines()) == BATCH + 1
    assert len(frames) == 8 * BATCH

    shuffled = random.Random(1).sample(many, len(many))
    (tmp_path / "list").write_text("\n".join(shuffled))
    again = ["video", "sample-tsn", "--files-from", "list", "--mode", "train"]
    assert pttool(*again, "-j", "2", "-o", "two", "--manifest", "2.jsonl").returncode == 3
    assert (tmp_path / "2.jsonl").read_bytes() == manifest
    assert _frames(tmp_path / "two") == frames

    (tmp_path / "out").rename(tmp_path / "one")
    with _running(tmp_path, environment, _command(shuffled, "-j", "2")) as process:
        process.kill()
    _wait_until_alone(process.pid)
    complete = _frames(tmp_path / "out")
    assert 0 < len(complete) < len(frames)
    assert complete.items() <= frames.items()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/many").iterdir()}
    assert pttool(*_command(many, "-j", "2", "--resume", "--manifest", "3.jsonl")).returncode == 3
    assert (tmp_path / "3.jsonl").read_bytes() == manifest
    assert _frames(tmp_path / "out") == frames
    kept = [path for path, before in times.items() if path.stat().st_mtime_ns == before]
    assert kept
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name != "many"] == [
        ".pttool-sampled.jsonl"
    ]


def _wait_until_alone(leader: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while _alive_in_session(leader):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_no_temporary_file_and_no_process(
    jobs: str, many: list[str], tmp_path: Path, environment: dict[str, str]
) -> None:
    with _running(tmp_path, environment, _command(many, "-j", jobs)) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
        _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert said == ""
    assert _alive_in_session(process.pid) == []
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == {"many", ".pttool-sampled.jsonl"}


def test_a_full_disk_ends_the_batch(
    many: list[str], tmp_path: Path, environment: dict[str, str]
) -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 4; exec "$0" "$@"', PTTOOL, *_command(many)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert_refused(done, 4, "out", "File too large", "--resume")
    assert not (tmp_path / "out").exists()


def test_progress_is_for_a_terminal(many: list[str], tmp_path: Path) -> None:
    screen, terminal = pty.openpty()
    command = [PTTOOL, "video", "sample-tsn", *many[:3], many[-1], "-o", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=terminal, check=False
    )
    os.close(terminal)
    said = os.read(screen, 10_000).decode()
    os.close(screen)
    assert done.returncode == 3
    assert "4 of 4 videos, 1 failed" in said
    assert said.index("\x1b[K", said.index("4 of 4")) < said.index("pttool: error")


def test_indices_alone_need_no_file(pttool: Pttool) -> None:
    (item,) = _json(pttool("video", "sample-tsn", "--num-frames", "300", "--json"))["items"]
    assert item["indices"] == [18, 56, 93, 131, 168, 206, 243, 281]
    assert (item["file"], item["pts"], item["n"]) == (None, None, 300)
    train = ["--num-frames", "300", "--mode", "train", "--json"]
    found = _json(pttool("video", "sample-tsn", "clip.mp4", "./x/../other.mp4", *train))["items"]
    assert [item["indices"][0] for item in found] == [33, 12]
    assert_refused(pttool("video", "sample-tsn", "--num-frames", "0"), 3, "no frames")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "no FILE is given"),
        (["a.mp4", "--resume"], "--resume without -o DIR"),
        (["a.mp4", "-o", "out", "--indices-only"], "--indices-only with -o"),
        (["a.mp4", "-o", "out", "--num-frames", "9"], "--num-frames with -o"),
        (["--num-frames", "9", "--sheet", "s.jpg"], "--num-frames with --sheet"),
        (["a.mp4", "--sheet", "s.txt"], "s.txt: is no picture"),
        (["a.mp4", "-o", "list"], "list: is a file"),
        (["a.mp4", "--manifest", "list"], "list: already exists"),
        (["a.mp4", "--manifest", "a.mp4", "--force"], "a.mp4: is an input"),
        (["a.mp4", "--mode", "train", "--twice-sample"], "--twice-sample with --mode train"),
        (["a.mp4", "--sheet", "s.jpg", "--manifest", "./s.jpg"], "the manifest and the sheet"),
        (["a.mp4", "--sheet", "s.jpg", "-k", "2001"], "--sheet shows 2000 frames"),
        (["--num-frames", "9", "-k", "99999999999"], "99999999999 frames of each video"),
        (["--num-frames", "9", "--clip-len", "1000000000000"], "frames of each video"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: list[str], word: str, pttool: Pttool, tmp_path: Path
) -> None:
    encode(tmp_path / "a.mp4", Film(numbers=range(2)))
    (tmp_path / "list").write_text("a.mp4\n")
    assert_refused(pttool("video", "sample-tsn", *options), 2, word)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4", "list"]


def test_contact_sheets(pttool: Pttool, tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", Film())
    found = _json(pttool("video", "sheet", "a.mp4", "-k", "4", "-o", "a.png", "--json"))
    assert [item["frame"] for item in found["items"]] == [5, 15, 25, 35]
    assert [item["time_s"] for item in found["items"]] == [0.2, 0.6, 1.0, 1.4]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert_refused(pttool("video", "sheet", "a.mp4", "-o", "a.png"), 2, "--force")
    assert_refused(pttool("video", "sheet", "a.mp4"), 2, "-o FILE")
    assert pttool("video", "sample-tsn", "a.mp4", "--sheet", "b.jpg").returncode == 0
    assert (tmp_path / "b.jpg").read_bytes().startswith(b"\xff\xd8")


def test_a_contact_sheet_that_is_too_large(pttool: Pttool, tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", Film(numbers=range(350)))
    sheet = ["video", "sheet", "a.mp4"]
    refused = pttool(*sheet, "-k", "350", "--columns", "1", "-o", "a.jpg")
    assert_refused(refused, 3, "too large for JPEG")
    assert_refused(pttool(*sheet, "-k", "99999", "-o", "a.jpg"), 2, "2000 frames")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]
    assert pttool(*sheet, "-k", "2", "--columns", "9" * 12, "-o", "a.png").returncode == 0


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        (["--indices-only"], ("torch", "cv2")),
        (["-o", "out"], ("torch",)),
        (["-o", "out"], ("rich",)),
    ],
)
def test_what_is_not_needed_is_not_imported(
    options: list[str], absent: tuple[str, ...], tmp_path: Path
) -> None:
    encode(tmp_path / "a.mp4", Film(numbers=range(2)))
    script = (
        "import atexit, sys\n"
        f"found = lambda: [name for name in {absent!r} if name in sys.modules]\n"
        "atexit.register(lambda: print(found(), file=sys.stderr))\n"
        "from pttool.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "video", "sample-tsn", "a.mp4", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
