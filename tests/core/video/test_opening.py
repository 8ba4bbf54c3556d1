"""What is opened as a video, and what is not; more of the latter is in torture_refused.py."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pttool.core.video.decode import open_video
from pttool.core.video.info import info
from pttool.core.video.types import UnreadableFrameError
from pttool.errors import InputError, UnavailableError
from tests.core.video.conftest import Torture
from tests.core.video.oracle import decode


@pytest.mark.parametrize("name", ["a:b.mp4", "http:x.mp4", "-.mp4", "%d.mp4", b"\xff.mp4"])
def test_a_name_is_nothing_but_a_name(name: str | bytes, torture: Torture, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    shutil.copy(torture("h264.mp4"), path)
    (row,) = info([path]).items
    assert row["frames"] == 40


def test_a_playlist_is_refused(torture: Torture, tmp_path: Path) -> None:
    shutil.copy(torture("h264.ts"), tmp_path / "part.ts")
    playlist = tmp_path / "all.m3u8"
    playlist.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.6,\npart.ts\n#EXT-X-ENDLIST\n")
    with pytest.raises(InputError, match=r"not a video: a playlist|not a video: text"):
        info([playlist])


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    with pytest.raises(InputError, match="is not a file"):
        info([tmp_path / "pipe.mp4"])


def test_a_codec_without_a_decoder(torture: Torture, tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(torture("h264.mp4").read_bytes().replace(b"avc1", b"zzzz"))
    with pytest.raises(UnavailableError, match="no decoder") as caught:
        info([path])
    assert "ffmpeg -i" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_must_not_be_read(torture: Torture, tmp_path: Path) -> None:
    shutil.copy(torture("h264.mp4"), tmp_path / "film.mp4")
    (tmp_path / "film.mp4").chmod(0)
    with pytest.raises(UnavailableError, match="permission"):
        info([tmp_path / "film.mp4"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nothing.mp4", "No such file"),
        ("nothing_%d.jpg", "no file fits this pattern"),
        ("nothing_*.jpg", "no file fits this pattern"),
        (".", "a folder without images"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_is_not_there(path: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        info([tmp_path / path])


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    name=st.sampled_from(["h264.mp4", "hevc.mkv", "vp9.webm", "mpeg4.avi", "h264.ts"]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=20),
    share=st.floats(0.1, 1),
)
def test_whatever_the_bytes_a_full_decode_is_the_truth(
    name: str,
    changes: list[tuple[float, int]],
    share: float,
    torture: Torture,
    tmp_path: Path,
) -> None:
    content = bytearray(torture(name).read_bytes())
    for place, value in changes:
        content[int(place * (len(content) - 1))] = value
    path = tmp_path / name
    path.write_bytes(content[: int(share * len(content))])
    try:
        with open_video(path) as video:
            with contextlib.suppress(UnreadableFrameError):
                list(video.pictures(range(0, len(video.index), 7)))
            assert len(video.decoded_index()) == len(decode(path))
            assert len(list(video.pictures(range(len(video.index))))) == len(video.index)
    except InputError as refusal:
        said = refusal.message
    else:
        said = f"{path}: is a video"
    assert said.startswith(f"{path}: ")
