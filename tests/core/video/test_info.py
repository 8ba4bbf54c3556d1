"""What `info` tells of videos beside how many frames they have, which test_torture.py checks."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pttool.core.video.info import info
from pttool.errors import InputError, UsageError
from tests.core.video.conftest import Torture
from tests.core.video.encoding import X264, Film, encode


def _facts(path: Path, *, fast: bool = False, decode: bool = False) -> dict[str, Any]:
    (row,) = info([path], fast=fast, decode=decode).items
    return dict(row)


# The values are those that ffprobe prints of these files, or that they were made with.
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "h264.mp4",
            {
                "codec": "h264", "width": 128, "height": 96, "rotation": 0, "pix_fmt": "yuv420p",
                "bit_depth": 8, "fps": 25.0, "fps_fraction": "25/1", "fps_source": "timestamps",
                "is_vfr": False, "frames": 40, "frames_header": 40, "frames_source": "packets",
                "duration_s": 1.6, "start_s": 0.0, "keyframes": 4, "gop_max": 12,
                "has_audio": False, "warnings": [],
            },
        ),
        ("ntsc.mp4", {"fps": 30000 / 1001, "fps_fraction": "30000/1001", "is_vfr": False}),
        ("vfr.mp4", {"is_vfr": True, "frames": 40, "fps_source": "timestamps"}),
        ("vfr.mkv", {"is_vfr": True, "frames_header": None}),
        ("vfr_dropped.mp4", {"is_vfr": True}),
        ("late.mp4", {"start_s": 5.0, "duration_s": 1.6}),
        ("wide_pixels.mp4", {"sample_aspect_ratio": "2:1", "width": 256, "coded_width": 128}),
        ("narrow_pixels.mkv", {"sample_aspect_ratio": "8:9", "width": 114, "height": 96}),
        ("odd_size.mkv", {"width": 131, "height": 97, "pix_fmt": "yuv444p"}),
        ("hevc_10_bit.mp4", {"codec": "hevc", "bit_depth": 10, "pix_fmt": "yuv420p10le"}),
        ("sound.mp4", {"has_audio": True, "frames": 40}),
        ("cover_first.mp4", {"codec": "h264", "frames": 40}),
        ("live.webm", {"codec": "vp9", "duration_s": 1.6, "frames_header": None}),
        ("one_frame.mp4", {"frames": 1, "is_vfr": None, "gop_max": 1}),
        ("one_gop.mp4", {"frames": 130, "keyframes": 1, "gop_max": 130}),
        ("h264.264", {"fps": 25.0, "fps_source": "assumed", "start_s": None, "is_vfr": None}),
        ("av1.mkv", {"codec": "av1", "frames": 40}),
        ("unpadded", {"codec": "mjpeg", "fps_source": "assumed", "gop_max": 1}),
    ],
)  # fmt: skip
def test_facts(name: str, wanted: dict[str, Any], torture: Torture) -> None:
    found = _facts(torture(name))
    assert {key: found[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("turned", "rotation", "shown"), [(90, 270, (128, 96)), (180, 180, (128, 96))]
)
def test_a_turned_film_is_told_as_it_is_shown(
    turned: int, rotation: int, shown: tuple[int, int], torture: Torture
) -> None:
    found = _facts(torture(f"turned_{turned}.mp4"))
    assert (found["width"], found["height"]) == shown
    stored = shown if turned % 180 == 0 else shown[::-1]
    assert (found["coded_width"], found["coded_height"]) == stored
    assert found["rotation"] == rotation


def test_header_and_truth_are_both_told_where_they_differ(torture: Torture) -> None:
    cut = _facts(torture("cut_h264.mp4"))
    assert cut["frames_header"] == 40
    assert cut["frames"] < 40
    assert cut["warnings"] == [
        f"truncated: {cut['frames']} of the 40 frames that the file claims can be read"
    ]
    edited = _facts(torture("edit_list.mp4"))
    assert (edited["frames_header"], edited["frames"]) == (40, 35)
    assert edited["warnings"] == ["the header counts 40 frames, of which 35 are shown"]


def test_damage_in_the_middle_is_told(torture: Torture) -> None:
    report = info([torture("flipped_h264.mp4")], decode=True)
    (row,) = report.items
    assert row["frames_source"] == "decoded"
    assert any(warning.startswith("corrupt: ") for warning in row["warnings"])
    assert [note.partition(": ")[2] for note in report.notes] == row["warnings"]


def test_fast_reads_the_header_alone(torture: Torture) -> None:
    cut = _facts(torture("cut_h264.mp4"), fast=True)
    assert (cut["frames"], cut["frames_source"], cut["fps"]) == (40, "assumed", 25.0)
    assert (cut["keyframes"], cut["is_vfr"]) == (None, None)
    assert (cut["width"], cut["rotation"]) == (128, 0)
    assert _facts(torture("live.webm"), fast=True)["frames"] is None


def test_decode_counts_what_comes_out(torture: Torture) -> None:
    assert _facts(torture("h264.mp4"), decode=True)["frames_source"] == "decoded"


def test_a_header_alone_is_not_the_full_truth(torture: Torture) -> None:
    with pytest.raises(UsageError, match="--fast with --decode"):
        info([torture("h264.mp4")], fast=True, decode=True)


def test_a_file_that_is_no_video_does_not_stop_the_others(torture: Torture, tmp_path: Path) -> None:
    empty, text = tmp_path / "empty.mp4", tmp_path / "text.mp4"
    empty.touch()
    text.write_text("a film\n")
    report = info([empty, torture("h264.mp4"), torture("vp9.webm")])
    assert [row["codec"] for row in report.items] == ["h264", "vp9"]
    assert report.summary["frames"] == 80
    assert isinstance(report.failure, InputError)
    assert report.failure.message == f"{empty}: empty file"
    assert info([empty, text, torture("h264.mp4")]).notes == (
        f"{empty}: empty file",
        f"{text}: not a video: text",
    )


def test_avi_counts_empty_slots_that_are_no_frames(tmp_path: Path) -> None:
    """AVI has one slot each tick, and packets of a finer clock leave slots between them empty."""
    path = tmp_path / "slots.avi"
    film = Film(rate=Fraction(50), ticks=range(0, 80, 2), options={**X264, "bf": "0"})
    encode(path, film)
    row = _facts(path)
    assert (row["frames"], row["fps"]) == (40, 25.0)
    assert row["frames_header"] > 40
    assert not any("truncated" in warning for warning in row["warnings"])
