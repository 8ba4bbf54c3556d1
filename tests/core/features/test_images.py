"""What a picture file shows, and which are refused; the expected pixels are numpy's."""

import contextlib
import io
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageFile

from pttool.core.features.images import read_image
from pttool.errors import InputError
from tests.core.features.edge_set import (
    COVER,
    GRAY,
    KINDS,
    LA,
    RGBA,
    SMOOTH,
    gray,
    over_white,
    png,
    save,
    turned,
)

READABLE = [name for name, kind in KINDS.items() if kind.pixels is not None]
ALTERED = ["baseline.jpg", "palette-key.png", "lzw.tif", "animated.gif", "lossless.webp"]
BITS_16 = np.array([[0, 128, 129, 1000, 65535]], np.uint16)
# Standard EXIF 2.32, 4.6.4, as displayed: by the side at which the 0th row and column are.
DISPLAYED: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    1: lambda stored: stored,
    2: np.fliplr,
    3: lambda stored: np.rot90(stored, 2),
    4: np.flipud,
    5: lambda stored: stored.swapaxes(0, 1),
    6: lambda stored: np.rot90(stored, -1),
    7: lambda stored: np.rot90(stored, 2).swapaxes(0, 1),
    8: np.rot90,
    9: lambda stored: stored,
}


def pixels(path: Path, **options: Any) -> NDArray[np.int64]:
    """Return what a file shows, (H, W, 3)."""
    picture = read_image(path, **options)
    assert picture.mode == "RGB"
    return np.asarray(picture).astype(np.int64)


@pytest.mark.parametrize("name", READABLE)
def test_each_kind_shows_what_was_written(tmp_path: Path, name: str) -> None:
    KINDS[name].make(tmp_path / name)
    shown, expected = pixels(tmp_path / name), KINDS[name].pixels
    assert expected is not None
    assert shown.shape == expected.shape
    assert np.abs(shown - expected).max() <= KINDS[name].tolerance


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("truncated.jpg", "truncated"),
        ("empty.jpg", "empty file"),
        ("text.jpg", "not a picture"),
        ("float.tif", "float pixels (TIFF)"),
    ],
)
def test_the_others_are_refused_by_name(tmp_path: Path, name: str, reason: str) -> None:
    KINDS[name].make(tmp_path / name)
    with pytest.raises(InputError) as refused:
        read_image(tmp_path / name)
    assert refused.value.message.startswith(f"{tmp_path / name}: ")
    assert reason in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", READABLE)
def test_no_part_of_a_file_is_taken_for_the_picture(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # as a user's code may
    KINDS[name].make(tmp_path / name)
    raw = (tmp_path / name).read_bytes()
    (tmp_path / f"half of {name}").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError):
        read_image(tmp_path / f"half of {name}")


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tif"])
@pytest.mark.parametrize("orientation", DISPLAYED)
def test_exif_turns_a_picture(tmp_path: Path, suffix: str, orientation: int) -> None:
    path = tmp_path / f"turned.{suffix}"
    save(SMOOTH, exif=turned(orientation), lossless=True, quality=95)(path)
    displayed = DISPLAYED[orientation](SMOOTH).astype(int)
    assert np.abs(pixels(path) - displayed).max() <= 8 * (suffix == "jpg")
    if suffix != "tif":
        assert np.abs(pixels(path, exif=False) - SMOOTH).max() <= 8 * (suffix == "jpg")


@pytest.mark.filterwarnings("ignore:.*EXIF:UserWarning")
def test_damaged_exif_turns_nothing(tmp_path: Path) -> None:
    save(SMOOTH, exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01")(tmp_path / "damaged.png")
    assert (pixels(tmp_path / "damaged.png") == SMOOTH).all()


def test_what_is_transparent_is_white_or_dropped(tmp_path: Path) -> None:
    save(RGBA)(tmp_path / "rgba.png")
    save(LA)(tmp_path / "la.png")
    assert (pixels(tmp_path / "rgba.png") == over_white(SMOOTH, COVER)).all()
    assert (pixels(tmp_path / "rgba.png", alpha="drop") == SMOOTH).all()
    assert (pixels(tmp_path / "la.png", alpha="drop") == gray(GRAY)).all()


def test_one_value_of_16_bits_may_be_transparent(tmp_path: Path) -> None:
    key = (b"tRNS", struct.pack(">H", 1000))
    (tmp_path / "key.png").write_bytes(png(BITS_16, 0, key))
    assert pixels(tmp_path / "key.png")[0, :, 0].tolist() == [0, 0, 1, 255, 255]
    (tmp_path / "opaque.png").write_bytes(png(BITS_16, 0))
    assert pixels(tmp_path / "opaque.png")[0, :, 0].tolist() == [0, 0, 1, 4, 255]


def test_integers_without_a_range_are_refused(tmp_path: Path) -> None:
    save(GRAY.astype(np.int32))(tmp_path / "labels.tif")
    with pytest.raises(InputError, match=r"signed or 32-bit pixels \(TIFF\)"):
        read_image(tmp_path / "labels.tif")


def _jpeg(width: int, height: int) -> bytes:
    """Return a JPEG of 16 x 16 pixels that claims to have more."""
    made = io.BytesIO()
    Image.new("RGB", (16, 16)).save(made, "JPEG")
    raw = bytearray(made.getvalue())
    frame = raw.index(b"\xff\xc0")
    raw[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(raw)


def _png(width: int, height: int) -> bytes:
    raw = png(BITS_16, 0)
    return raw.replace(struct.pack(">2I", 5, 1), struct.pack(">2I", width, height))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("claim", [_jpeg(12000, 12000), _png(100_000, 100_000)])
def test_what_a_header_claims_is_not_believed(tmp_path: Path, claim: bytes) -> None:
    (tmp_path / "claim").write_bytes(claim)
    with pytest.raises(InputError):
        read_image(tmp_path / "claim")


def test_a_line_that_a_resize_would_blow_up_is_refused(tmp_path: Path) -> None:
    save(np.zeros((1, 1001), np.uint8))(tmp_path / "line.png")
    with pytest.raises(InputError, match="1001 x 1 pixels are too narrow"):
        read_image(tmp_path / "line.png")


def test_other_things_than_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")  # which would never end
    for path in (tmp_path / "pipe.jpg", tmp_path, tmp_path / "missing.jpg", tmp_path / "a\0b"):
        with pytest.raises(InputError):
            read_image(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    save(SMOOTH)(tmp_path / "mine.png")
    (tmp_path / "mine.png").chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        read_image(tmp_path / "mine.png")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
        (b"\n<!DOCTYPE html><title>404</title>", "a web page"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"),
    ],
)
def test_what_bears_the_name_of_a_picture_is_called_by_its_own(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "1.jpg").write_bytes(content)
    with pytest.raises(InputError, match=f"not a picture: {said}"):
        read_image(tmp_path / "1.jpg")


@pytest.fixture(scope="module")
def raws(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of some of the kinds."""
    folder = tmp_path_factory.mktemp("raws")
    for name in ALTERED:
        KINDS[name].make(folder / name)
    return {name: (folder / name).read_bytes() for name in ALTERED}


@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(ALTERED),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=4)), max_size=4
    ),
)
def test_whatever_bytes_a_file_holds_it_is_read_or_refused(
    tmp_path: Path, raws: dict[str, bytes], name: str, changes: list[tuple[float, bytes]]
) -> None:
    raw = bytearray(raws[name])
    for where, new in changes:
        at = int(where * len(raw))
        raw[at : at + len(new)] = new
    (tmp_path / name).write_bytes(raw)
    with contextlib.suppress(InputError):
        assert read_image(tmp_path / name).mode == "RGB"
