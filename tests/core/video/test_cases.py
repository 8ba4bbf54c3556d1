"""Bug reports of other tools, and what pttool does instead."""

import csv
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pttool.core.video.tsn import Sampling, frame_indices, segment_ranges
from pttool.errors import InputError
from tests.conftest import Completed, Program, Pttool, assert_refused
from tests.core.video.barcode import read
from tests.core.video.encoding import X264, Film, encode
from tests.core.video.torture_codecs import AV1
from tests.core.video.torture_refused import REFUSED

CASES = Path(__file__).parents[2] / "cases" / "video"
TRUNCATED = CASES / "08-truncated-mp4" / "12_trunc_moov.mp4"
CORRUPT = CASES / "13-batch-with-one-bad-file" / "26_corrupt_mid.mp4"
LONG = Film(options={**X264, "g": "60"}, numbers=range(300))
MIDDLES = [18, 56, 93, 131, 168, 206, 243, 281]


def _table() -> Iterator[tuple[int, int, str, str, str]]:
    path = CASES / "01-tsn-middle-exact-integers" / "table.csv"
    for row in list(csv.reader(path.read_text().splitlines()))[1:]:
        yield int(row[0]), int(row[1]), row[2], row[3], row[4]


@pytest.mark.parametrize(("frames", "segments", "middles", "first", "last"), list(_table()))
def test_segments_in_exact_integers(
    frames: int, segments: int, middles: str, first: str, last: str
) -> None:
    if middles == "ERROR":
        with pytest.raises(InputError):
            frame_indices(frames, Sampling(segments))
        return
    assert " ".join(map(str, frame_indices(frames, Sampling(segments)))) == middles
    ranges = segment_ranges(frames, segments)
    assert " ".join(str(low) for low, _ in ranges) == first
    assert " ".join(str(high) for _, high in ranges) == last


def test_variable_frame_rate(pttool: Pttool, tmp_path: Path) -> None:
    """opencv/opencv#9053, opencv/opencv#26827: a seek by number gives another frame."""
    thirds = [i * 9000 if i < 100 else 900_000 + (i - 100) * 3000 for i in range(300)]
    film = Film(LONG.codec, LONG.options, LONG.numbers, ticks=thirds, time_base=Fraction(1, 90000))
    encode(tmp_path / "vfr.mp4", film, video_track_timescale="90000")
    info = _info(pttool("video", "info", "vfr.mp4", "--json"))
    assert (info["frames"], info["is_vfr"]) == (300, True)
    assert _sampled(pttool, tmp_path, "vfr.mp4") == MIDDLES


def test_a_film_that_lies_on_its_side(pttool: Pttool, tmp_path: Path) -> None:
    """opencv/opencv#15499, opencv/opencv#22088: pictures that are not upright."""
    encode(tmp_path / "phone.mp4", Film(size=(128, 160), turned=270))
    info = _info(pttool("video", "info", "phone.mp4", "--json"))
    assert (info["coded_width"], info["coded_height"]) == (160, 128)
    assert (info["width"], info["height"], info["rotation"]) == (128, 160, 90)
    _stack(pttool, tmp_path, "phone.mp4", "-o", "upright")
    _stack(pttool, tmp_path, "phone.mp4", "-o", "lying", "--no-rotate")
    upright = np.load(tmp_path / "upright" / "phone.npy")
    lying = np.load(tmp_path / "lying" / "phone.npy")
    assert upright.shape == (8, 160, 128, 3)
    assert lying.shape == (8, 128, 160, 3)
    assert [read(picture) for picture in upright] == [2, 7, 12, 17, 22, 27, 32, 37]
    assert (np.rot90(lying, axes=(1, 2)) == upright).all()  # counterclockwise, as ffprobe says it


def test_a_truncated_download(pttool: Pttool, tmp_path: Path) -> None:
    """dmlc/decord#124: the header is there, the end of the pictures is not."""
    info = pttool("video", "info", str(TRUNCATED), "--json")
    found = _info(info)
    assert info.returncode == 0
    assert (found["frames_header"], found["frames"]) == (300, 176)
    assert any("truncated" in warning for warning in found["warnings"])
    (tmp_path / "cut.mp4").write_bytes(TRUNCATED.read_bytes())
    assert _sampled(pttool, tmp_path, "cut.mp4") == [11, 33, 55, 77, 99, 121, 143, 165]
    (entry,) = _manifest(tmp_path / "m.jsonl")
    assert entry["n"] == 176
    assert any("176" in warning for warning in entry["warnings"])
    assert_refused(pttool("video", "sample-tsn", "cut.mp4", "-o", "strict", "--strict"), 3, "176")
    assert not (tmp_path / "strict").exists()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_video(name: str, pttool: Pttool, tmp_path: Path) -> None:
    """meta-pytorch/torchcodec#1363, dmlc/decord#124: the decoder's own words, or a traceback."""
    make, words = REFUSED[name]
    make(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    assert_refused(pttool("video", "info", name), 3, name, *words)
    sampled = pttool("video", "sample-tsn", name, "-o", "out", "--manifest", "m.jsonl")
    assert_refused(sampled, 3, name, *words)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_stream_without_timestamps(pttool: Pttool, tmp_path: Path) -> None:
    """meta-pytorch/torchcodec#1363: cv2 counts -1.9e14 frames, others refuse the file."""
    encode(tmp_path / "raw.h264", LONG, form="h264")
    info = pttool("video", "info", "raw.h264", "--json")
    found = _info(info)
    assert (found["frames"], found["fps"]) == (300, 25.0)
    assert any("assumed" in warning for warning in found["warnings"])
    assert _sampled(pttool, tmp_path, "raw.h264") == MIDDLES


def test_av1(pttool: Pttool, tmp_path: Path) -> None:
    """opencv/opencv-python#908, dmlc/decord#319: opens, counts 100 frames and decodes none."""
    encode(tmp_path / "av1.mkv", Film(AV1.codec, AV1.options, range(100)))
    assert _info(pttool("video", "info", "av1.mkv", "--json"))["frames"] == 100
    assert _sampled(pttool, tmp_path, "av1.mkv", "-k", "4") == [12, 37, 62, 87]


@pytest.mark.parametrize("broken", ["removed", "libGL"])
def test_cv2_that_is_broken(broken: str, program: Program, tmp_path: Path) -> None:
    """opencv/opencv-python#467, #370: two wheels and one removed, and a machine without libGL."""
    modules = tmp_path / "modules"
    (modules / "cv2").mkdir(parents=True)
    if broken == "libGL":
        reason = "libGL.so.1: cannot open shared object file: No such file or directory"
        (modules / "cv2" / "__init__.py").write_text(f"raise ImportError({reason!r})\n")
    else:
        (modules / "cv2" / "__init__.py").touch()
    encode(tmp_path / "a.mp4", Film())
    env = {"PYTHONPATH": os.fspath(modules)}
    refused = program("video", "sample-tsn", "a.mp4", "-o", "out", env=env)
    assert_refused(refused, 4, "cv2 is broken: reinstall one opencv wheel")
    assert not (tmp_path / "out").exists()
    assert program("video", "info", "a.mp4", env=env).returncode == 0
    indices = program("video", "sample-tsn", "a.mp4", "--indices-only", "--json", env=env)
    assert json.loads(indices.stdout)["items"][0]["indices"] == [2, 7, 12, 17, 22, 27, 32, 37]


def test_one_bad_file_among_three(pttool: Pttool, tmp_path: Path) -> None:
    """dmlc/decord#373: one bad clip ends the whole pipeline."""
    for name in ("1.mp4", "3.mp4"):
        encode(tmp_path / name, Film())
    (tmp_path / "2.mp4").write_bytes(CORRUPT.read_bytes())
    (tmp_path / "list").write_text("1.mp4\n2.mp4\n3.mp4\n")
    command = ("video", "sample-tsn", "--files-from", "list", "-o", "out", "--manifest", "m.jsonl")
    done = pttool(*command)
    assert done.returncode == 3
    first, second, third = _manifest(tmp_path / "m.jsonl")
    assert [first["status"], second["status"], third["status"]] == ["ok", "error", "ok"]
    assert second["reason"]
    pictures = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.jpg")}
    assert sorted({path.parent.name for path in pictures}) == ["1", "3"]
    again = pttool(*command, "--resume", "--force")
    assert again.returncode == 3
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.jpg")} == pictures


def _info(done: Completed) -> dict[str, Any]:
    (item,) = json.loads(done.stdout)["items"]
    assert isinstance(item, dict)
    return item


def _sampled(pttool: Pttool, folder: Path, name: str, *options: str) -> list[int | None]:
    """Return the numbers in the pictures that are sampled of a file, which those say too."""
    _stack(pttool, folder, name, "-o", "out", "--manifest", "m.jsonl", *options)
    (entry,) = _manifest(folder / "m.jsonl")
    numbers = [read(picture) for picture in np.load(folder / "out" / entry["output"])]
    assert numbers == entry["indices"]
    return numbers


def _stack(pttool: Pttool, folder: Path, name: str, *options: str) -> None:
    done = pttool("video", "sample-tsn", name, "--format", "npy", *options)
    assert done.returncode == 0, done.stderr


def _manifest(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
