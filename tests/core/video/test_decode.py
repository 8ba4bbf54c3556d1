"""How pictures are had: in what order, at what price; what they show is in test_torture.py."""

import gc
from pathlib import Path

import av
import pytest

from pttool.core.video import entering
from pttool.core.video.decode import open_video
from pttool.core.video.types import UnreadableFrameError
from tests.core.video.barcode import read
from tests.core.video.conftest import Torture
from tests.core.video.encoding import X264, Film, encode


def test_a_frame_that_is_wanted_again_comes_again(torture: Torture) -> None:
    with open_video(torture("h264.mp4")) as video:
        pictures = list(video.pictures([3, 3, 17, 17, 17, 39]))
    assert [picture.ordinal for picture in pictures] == [3, 3, 17, 17, 17, 39]
    assert [read(picture.rgb) for picture in pictures] == [3, 3, 17, 17, 17, 39]
    assert [picture.pts for picture in pictures] == [512 * i for i in (3, 3, 17, 17, 17, 39)]


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode(tmp_path / "film.mp4", Film(options={**X264, "g": "100"}, numbers=range(200)))
    decoded = 0
    decode = entering._decoded

    def counted(*args: object, **kwargs: object) -> list[av.VideoFrame]:
        nonlocal decoded
        frames = decode(*args, **kwargs)  # type: ignore[arg-type]
        decoded += len(frames)
        return frames

    monkeypatch.setattr(entering, "_decoded", counted)
    with open_video(tmp_path / "film.mp4") as video:
        (picture,) = video.pictures([150])
    assert read(picture.rgb) == 150
    assert decoded < 40  # of the 51 from the keyframe on, others refer to every second


def _held() -> int:
    return sum(type(thing) is av.VideoFrame for thing in gc.get_objects())


def test_frames_are_given_free_at_once(torture: Torture) -> None:
    gc.collect()
    before = _held()
    gc.disable()
    try:
        with open_video(torture("turned_90.mp4")) as video:
            held = [_held() - before for _ in video.pictures(range(40))]
    finally:
        gc.enable()
    assert max(held) <= 12


def test_not_turned_unless_wanted(torture: Torture) -> None:
    with open_video(torture("turned_90.mp4"), rotate=False) as video:
        (picture,) = video.pictures([0])
        assert picture.rgb.shape == (128, 96, 3)
    with open_video(torture("turned_90.mp4")) as video:
        (picture,) = video.pictures([0])
        assert picture.rgb.shape == (96, 128, 3)


def test_damage_is_met_before_a_wrong_frame_is_given(torture: Torture) -> None:
    with open_video(torture("one_flip_h264.mp4")) as video:
        if video.index.source == "packets":
            with pytest.raises(UnreadableFrameError, match="can't be decoded"):
                list(video.pictures(range(len(video.index))))
        index = video.decoded_index()
        assert video.damage is not None
        assert video.damage.startswith("corrupt: ")
        assert len(list(video.pictures(range(len(index))))) == len(index)


def test_what_is_cut_off_is_told(torture: Torture) -> None:
    with open_video(torture("cut_h264.mp4")) as video:
        assert video.shortfall is not None
        assert video.shortfall.startswith(f"truncated: {len(video.index)} of the 40 frames")
        assert video.damage is None
    with open_video(torture("h264.mp4")) as video:
        assert (video.shortfall, video.damage) == (None, None)


def test_images_in_natural_order(torture: Torture) -> None:
    folder = torture("unpadded")
    for path in (folder, folder / "img_%d.jpg", folder / "img_*.jpg"):
        with open_video(path) as video:
            assert [read(picture.rgb) for picture in video.pictures([0, 1, 9])] == [0, 1, 9]


def test_an_image_that_is_none(torture: Torture, tmp_path: Path) -> None:
    for number in range(3):
        content = (torture("unpadded") / f"img_{number + 1}.jpg").read_bytes()
        (tmp_path / f"{number}.jpg").write_bytes(
            content if number != 1 else b"\xff\xd8 is no image"
        )
    with open_video(tmp_path) as video:
        assert len(video.index) == 3
        with pytest.raises(UnreadableFrameError, match=r"1\.jpg"):
            list(video.pictures([0, 1, 2]))
        assert len(video.decoded_index()) == 2
        assert [read(picture.rgb) for picture in video.pictures([0, 1])] == [0, 2]
        assert video.shortfall == "2 of 3 images can be read"
