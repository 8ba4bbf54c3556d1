"""The picture of index i is the i-th of a full sequential decode, whatever the kind of file."""

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pttool.core.video.decode import open_video
from pttool.core.video.info import info
from pttool.core.video.outputs.products import Products
from pttool.core.video.outputs.saving import Saving
from pttool.core.video.sample_tsn import sample_tsn
from pttool.core.video.tsn import Mode, Sampling
from pttool.core.video.types import UnreadableFrameError
from pttool.errors import InputError
from tests.core.video.barcode import read
from tests.core.video.conftest import Torture, Truth
from tests.core.video.oracle import shown
from tests.core.video.torture import DAMAGED, KINDS, WHOLE
from tests.core.video.torture_refused import REFUSED

# Lost frames that nothing but decoding that very GOP tells of: without it, those behind are taken
# to be further on than a full decode has them.
UNNOTICED = ("one_flip_av1.mkv",)
GROWING = ("grows.ts", "grows.264")  # their frames have two sizes, and can't be stacked


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_of_the_set_shows_the_numbers_drawn(name: str, truth: Truth) -> None:
    assert [frame.number for frame in truth(name)] == list(WHOLE[name].numbers or ())


@pytest.mark.parametrize("name", WHOLE)
def test_every_frame_once_in_random_order(name: str, torture: Torture, truth: Truth) -> None:
    wanted = truth(name)
    order = random.Random(name).sample(range(len(wanted)), len(wanted))
    with open_video(torture(name)) as video:
        assert len(video.index) == len(wanted)
        for ordinal in order:
            (picture,) = video.pictures([ordinal])
            assert (picture.ordinal, shown(picture.rgb)) == (ordinal, wanted[ordinal])


@pytest.mark.parametrize("pattern", ["frame%05d.png", "frame*.png", "frame0*.png"])
def test_a_pattern_names_images_too(pattern: str, torture: Torture, truth: Truth) -> None:
    with open_video(torture("padded") / pattern) as video:
        pictures = list(video.pictures(range(len(video.index))))
    assert [shown(picture.rgb) for picture in pictures] == truth("padded")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_gives_what_a_decode_gives(
    name: str, torture: Torture, truth: Truth
) -> None:
    numbers = [frame.number for frame in truth(name)]
    order = random.Random(name).sample(range(len(numbers)), len(numbers))
    with open_video(torture(name)) as video:
        for ordinal in order if name not in UNNOTICED else ():
            with contextlib.suppress(UnreadableFrameError):
                (picture,) = video.pictures([ordinal])
                assert read(picture.rgb) == numbers[ordinal]
        assert len(video.decoded_index()) == len(numbers)
        found = [read(picture.rgb) for picture in video.pictures(range(len(numbers)))]
    assert found == numbers


@pytest.mark.parametrize("name", KINDS)
def test_info_counts_the_frames(name: str, torture: Torture, truth: Truth) -> None:
    (scanned,) = info([torture(name)]).items
    (decoded,) = info([torture(name)], decode=True).items
    assert decoded["frames"] == len(truth(name))
    if name not in UNNOTICED:
        assert scanned["frames"] == len(truth(name))


@pytest.mark.parametrize(
    ("k", "mode"),
    [
        (8, "test"),
        (25, "train"),
        pytest.param(25, "test", marks=pytest.mark.verify),
        pytest.param(8, "train", marks=pytest.mark.verify),
    ],
)
def test_the_frames_that_are_saved_are_those_of_the_manifest(
    k: int, mode: Mode, torture: Torture, truth: Truth, tmp_path: Path
) -> None:
    paths = [torture(name) for name in KINDS if name not in GROWING]
    products = Products(Saving(tmp_path, "npy"))
    report = sample_tsn(paths, Sampling(k, mode), products, root=paths[0].parent)
    assert len(report.items) == len(paths)
    for entry in report.items:
        name, wanted = entry["file"], truth(entry["file"])
        if entry["status"] == "error":
            assert name in DAMAGED
            assert entry["reason"]
            continue
        assert entry["n"] == len(wanted), name
        _assert_chosen(entry["indices"], len(wanted), k, mode)
        found = [shown(rgb) for rgb in np.load(tmp_path / entry["output"])]
        expected = [wanted[index] for index in entry["indices"]]
        assert [one.number for one in found] == [one.number for one in expected], name
        assert found == expected or name in DAMAGED, name


def _assert_chosen(indices: list[int], n: int, k: int, mode: str) -> None:
    """Assert what the issue defines: the middle of each segment, or a frame in it."""
    if mode == "test":
        assert indices == [(2 * i + 1) * n // (2 * k) for i in range(k)]
        return
    for i, index in enumerate(indices):
        first = i * n // k
        assert first <= index <= max(first, (i + 1) * n // k - 1)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_video_is_refused_by_its_kind(name: str, tmp_path: Path) -> None:
    make, words = REFUSED[name]
    path, out = tmp_path / name, tmp_path / "out"
    make(path)
    attempts: list[Callable[[], object]] = [
        lambda: info([path]),
        lambda: sample_tsn([path], Sampling(), Products(Saving(out))),
    ]
    for attempt in attempts:
        with pytest.raises(InputError) as caught:
            attempt()
        assert str(path) in caught.value.message
        assert all(word in caught.value.message for word in words), caught.value.message
    assert not out.exists()
