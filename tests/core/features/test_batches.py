"""Batches keep their slots whatever is read, in bounded memory; frames are those of sample-tsn."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from pttool.core.features.batches import Batch, Failure, Reading, batches, of_one_shape
from pttool.core.features.inputs import Inputs, list_inputs
from pttool.core.features.preprocessing import Preprocessing
from pttool.errors import InputError
from tests.core.features.edge_set import KINDS, SMOOTH, make_all, save, turned
from tests.core.video import barcode
from tests.core.video.encoding import Film, encode
from tests.core.video.torture import KINDS as DAMAGED

READING = Reading()


def as_stored(picture: Image.Image) -> Tensor:
    """Return the bytes of a picture, (3, H, W)."""
    return torch.from_numpy(np.array(picture, dtype=np.float32)).permute(2, 0, 1)


def of_shape(*shape: int) -> Preprocessing:
    """Return a preprocessing that keeps pictures as they are."""
    return Preprocessing(as_stored, {}, shape)


def numbered(folder: Path, count: int) -> Inputs:
    """Write pictures of 2 x 2 pixels that have their numbers for a colour."""
    for number in range(count):
        save(np.full((2, 2, 3), number, np.uint8))(folder / f"{number}.png")
    return list_inputs([folder])


def read(
    inputs: Inputs,
    parts: Sequence[range],
    preprocessing: Preprocessing,
    reading: Reading = READING,
    *,
    batch_size: int = 4,
    decoders: int = 2,
) -> list[Batch]:
    """Return all batches."""
    made = batches(inputs, parts, preprocessing, reading, batch_size=batch_size, decoders=decoders)
    return list(made)


def test_each_picture_is_in_its_own_slot_and_no_batch_crosses_a_part(tmp_path: Path) -> None:
    inputs = numbered(tmp_path, 23)
    read_ = read(inputs, [range(10), range(20, 23)], of_shape(3, 2, 2), decoders=3)
    expected = [range(4), range(4, 8), range(8, 10), range(20, 23)]
    assert [batch.numbers for batch in read_] == expected
    for batch in read_:
        assert batch.pictures.dtype == torch.float32
        assert batch.pictures.shape == (len(batch.numbers), 3, 2, 2)
        assert batch.pictures[:, 0, 0, 0].tolist() == list(batch.numbers)
        assert batch.kept == list(range(len(batch.numbers)))


def test_batches_can_be_asked_for_in_inference_mode(tmp_path: Path) -> None:
    with torch.inference_mode():
        (batch,) = read(numbered(tmp_path, 2), [range(2)], of_shape(3, 2, 2))
    assert batch.pictures[:, 0, 0, 0].tolist() == [0, 1]


def test_what_cannot_be_read_keeps_its_slot_as_zeros_and_says_why(tmp_path: Path) -> None:
    make_all(tmp_path)
    inputs = list_inputs([tmp_path])
    upright = Preprocessing(lambda picture: as_stored(picture.resize((80, 60))), {}, (3, 60, 80))
    failed = {}
    for batch in read(inputs, [range(len(inputs))], upright, batch_size=7):
        for failure in batch.failures:
            failed[inputs[batch.numbers[failure.slot]].id] = failure.reason
            assert not batch.pictures[failure.slot].any()
        assert all(batch.pictures[slot].any() for slot in batch.kept)
    assert failed.keys() == {name for name, kind in KINDS.items() if kind.pixels is None}
    assert failed["empty.jpg"] == "empty file"
    assert not any(str(tmp_path) in reason for reason in failed.values())


def test_batches_are_the_same_for_any_number_of_decoders(tmp_path: Path) -> None:
    make_all(tmp_path)
    inputs = list_inputs([tmp_path])
    crop = Preprocessing(lambda picture: as_stored(picture.crop((0, 0, 32, 32))), {}, (3, 32, 32))
    one = read(inputs, [range(27)], crop, decoders=1)
    many = read(inputs, [range(27)], crop, decoders=8)
    for a, b in zip(one, many, strict=True):
        assert torch.equal(a.pictures, b.pictures)
        assert a.failures == b.failures


def test_no_more_is_decoded_than_a_little_ahead(tmp_path: Path) -> None:
    inputs = numbered(tmp_path, 60)
    decoded = threading.Semaphore(0)

    def counted(picture: Image.Image) -> Tensor:
        decoded.release()
        return as_stored(picture)

    one_ahead = Preprocessing(counted, {}, (3, 2, 2))
    made = batches(inputs, [range(60)], one_ahead, READING, batch_size=4, decoders=2)
    next(made)
    for _ in range(12):  # the batch, and those begun
        assert decoded.acquire(timeout=60)
    time.sleep(0.05)
    assert not decoded.acquire(blocking=False)
    made.close()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_decoders_leave_the_number_of_torch_threads_alone(tmp_path: Path) -> None:
    inputs, before = numbered(tmp_path, 4), torch.get_num_threads()
    threads = []

    def noted(picture: Image.Image) -> Tensor:
        threads.append(torch.get_num_threads())
        return as_stored(picture)

    read(inputs, [range(4)], Preprocessing(noted, {}, (3, 2, 2)))
    assert set(threads) == {1}
    assert torch.get_num_threads() == before


def test_frames_of_videos_are_the_middles_of_segments(tmp_path: Path) -> None:
    encode(tmp_path / "clip.mp4", Film(numbers=range(30)))
    inputs = list_inputs([tmp_path / "clip.mp4"], frames=5)
    read_ = read(inputs, [range(5)], of_shape(3, 96, 128), Reading(frames=5), batch_size=3)
    rgb = [picture.permute(1, 2, 0).numpy() for batch in read_ for picture in batch.pictures]
    assert [barcode.read(picture) for picture in rgb] == [3, 9, 15, 21, 27]


def test_a_video_without_pictures_fails_in_each_of_its_slots(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_text("not found\n")
    inputs = list_inputs([tmp_path], frames=3)
    (batch,) = read(inputs, [range(3)], of_shape(3, 2, 2), Reading(frames=3))
    said = "not a video: text"
    assert batch.failures == (Failure(0, said), Failure(1, said), Failure(2, said))


def test_a_damaged_video_fails_whole_though_a_batch_has_a_good_frame_of_it(tmp_path: Path) -> None:
    DAMAGED["flipped_h264.ts"].make(tmp_path / "clip.ts")  # which shows only where it is decoded
    inputs = list_inputs([tmp_path], frames=5)
    read_ = read(inputs, [range(5)], of_shape(3, 96, 128), Reading(frames=5), batch_size=1)
    assert [len(batch.failures) for batch in read_] == [1, 1, 1, 1, 1]
    assert {batch.failures[0].reason for batch in read_} == {
        "corrupt: 4 pictures damaged, the first is 12"
    }


def test_exif_and_alpha_are_read_as_asked(tmp_path: Path) -> None:
    save(np.dstack([SMOOTH, 0 * SMOOTH[..., :1]]), exif=turned(6))(tmp_path / "1.png")
    inputs = list_inputs([tmp_path])
    (white,) = read(inputs, [range(1)], of_shape(3, 80, 60))
    assert (white.pictures == 255).all()
    (stored,) = read(inputs, [range(1)], of_shape(3, 60, 80), Reading(exif=False, alpha="drop"))
    assert torch.equal(stored.pictures[0].permute(1, 2, 0), torch.from_numpy(SMOOTH).float())


def test_the_first_picture_that_can_be_read_says_the_shape_of_all(tmp_path: Path) -> None:
    (tmp_path / "0.png").touch()
    for number, side in ((1, 2), (2, 3), (3, 2)):
        save(np.full((side, side, 3), number, np.uint8))(tmp_path / f"{number}.png")
    inputs = list_inputs([tmp_path])
    pinned = of_one_shape(Preprocessing(as_stored, {}, None), inputs, READING)
    assert pinned.shape == (3, 2, 2)
    (batch,) = read(inputs, [range(4)], pinned)
    assert batch.kept == [1, 3]
    with pytest.raises(InputError, match="none of the pictures can be read"):
        of_one_shape(Preprocessing(as_stored, {}, None), inputs[:1], READING)
