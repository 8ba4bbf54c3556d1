"""What sampling writes: the frames of the indices, under names that nothing else has."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from pttool.core.video.outputs.products import Products
from pttool.core.video.outputs.saving import Saving
from pttool.core.video.sample_tsn import sample_tsn
from pttool.core.video.sampling.naming import output_names, sources
from pttool.core.video.tsn import Sampling
from pttool.errors import InputError, UsageError
from tests.core.video.barcode import read
from tests.core.video.encoding import Film, encode

MIDDLES = [2, 7, 12, 17, 22, 27, 32, 37]  # of 40 frames
Make = Callable[..., Path]


@pytest.fixture
def clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a film of 40 numbered frames in the working folder."""
    monkeypatch.chdir(tmp_path)

    def make(name: str, **fields: object) -> Path:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        encode(Path(name), Film(**fields))  # type: ignore[arg-type]
        return Path(name)

    return make


def _numbers(folder: str) -> list[int | None]:
    """Return the numbers that the pictures in a folder show, in the order of their names."""
    paths = sorted(Path(folder).glob("img_*"))
    return [read(np.asarray(cv2.imread(str(path)), np.uint8)) for path in paths]  # black and white


def _names(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_pictures_in_the_order_sampled(clip: Make, suffix: str) -> None:
    products = Products(Saving(Path("out"), suffix))  # type: ignore[arg-type]
    (entry,) = sample_tsn([clip("a/b.mp4")], Sampling(8), products).items
    assert entry["indices"] == MIDDLES
    assert entry["output"] == "a/b"
    assert _names("out/a/b") == [f"img_{number:05d}.{suffix}" for number in range(1, 9)]
    assert _numbers("out/a/b") == MIDDLES


def test_pictures_named_by_their_index(clip: Make) -> None:
    products = Products(Saving(Path("out"), numbered_by="index"))
    sample_tsn([clip("b.mp4")], Sampling(3, clip_len=2), products)
    indices = [6, 7, 19, 20, 32, 33]
    assert _names("out/b") == [f"img_{index:05d}.jpg" for index in indices]
    assert _numbers("out/b") == indices


def test_a_frame_that_is_taken_twice_is_written_twice(clip: Make) -> None:
    path = clip("short.mp4", numbers=range(3))
    sample_tsn([path], Sampling(8), Products(Saving(Path("out"))))
    assert _numbers("out/short") == [0, 0, 0, 1, 1, 2, 2, 2]


def test_arrays_hold_the_frames_in_the_order_sampled(clip: Make) -> None:
    path, sampling = clip("b.mp4"), Sampling(4, twice=True)
    for form in ("npy", "npz", "pt"):
        sample_tsn([path], sampling, Products(Saving(Path("out"), form)))
    frames = np.load("out/b.npy")
    assert (frames.shape, frames.dtype) == ((8, 96, 128, 3), np.uint8)
    indices = [5, 15, 25, 35, 0, 10, 20, 30]
    assert [read(rgb) for rgb in frames] == indices
    with np.load("out/b.npz") as archive:
        assert archive["indices"].tolist() == indices
        assert (archive["frames"] == frames).all()
    assert (torch.load("out/b.pt", weights_only=True).numpy() == frames).all()


@pytest.mark.parametrize(("size", "expected"), [((256, 96), (171, 64)), ((96, 130), (64, 87))])
def test_the_short_side_in_the_pictures_own_proportions(
    clip: Make, size: tuple[int, int], expected: tuple[int, int]
) -> None:
    products = Products(Saving(Path("out"), "npy", short_side=64))
    sample_tsn([clip("b.mp4", size=size)], Sampling(2), products)
    assert np.load("out/b.npy").shape == (2, expected[1], expected[0], 3)


def test_quality_is_that_of_jpeg(clip: Make) -> None:
    path, sizes = clip("b.mp4"), []
    for quality in (30, 95):
        saving = Saving(Path(f"out{quality}"), quality=quality)
        sample_tsn([path], Sampling(1), Products(saving))
        sizes.append((saving.folder / "b/img_00001.jpg").stat().st_size)
    assert sizes[0] < sizes[1]


def test_videos_of_one_name_do_not_collide(clip: Make) -> None:
    paths = [clip("x/clip.mp4"), clip("y/clip.mp4", numbers=range(100, 140))]
    sample_tsn(paths, Sampling(1), Products(Saving(Path("out"))))
    assert _numbers("out/x/clip") == [20]
    assert _numbers("out/y/clip") == [120]


def test_names_are_relative_to_the_root(tmp_path: Path) -> None:
    root, other = tmp_path / "data", tmp_path / "other"
    root.mkdir()
    paths = [
        root / "x/a.mp4",
        root / "x/../a.mp4",
        root / "a.webm",
        other / "b.v2.mp4",
        root / "x/a.mp4",
    ]
    found = sources(paths, root)
    outside = str(other / "b.v2.mp4")
    assert [source.name for source in found] == ["x/a.mp4", "a.mp4", "a.webm", outside[1:]]
    assert [source.file for source in found] == ["x/a.mp4", "a.mp4", "a.webm", outside]
    assert list(output_names(found, ".npy").values()) == [
        "x/a.npy",
        "a.mp4.npy",
        "a.webm.npy",
        f"{outside[1:-4]}.npy",
    ]
    assert output_names(sources([root / "x/*.jpg"], root)) == {"x/*.jpg": "x"}


def test_names_of_videos_elsewhere_do_not_tell_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, data = tmp_path / "here", tmp_path / "data"
    here.mkdir()
    monkeypatch.chdir(here)

    def names(*paths: Path) -> list[str]:
        return [source.name for source in sources(paths)]

    assert names(Path("x/a.mp4"), here / "b.mp4") == ["x/a.mp4", "b.mp4"]
    assert names(data / "x/a.mp4") == ["a.mp4"]
    assert names(data / "x/a.mp4", data / "y/a.mp4") == ["x/a.mp4", "y/a.mp4"]


def test_a_resumed_run_redoes_what_is_incomplete_or_made_otherwise(clip: Make) -> None:
    paths = [clip("a.mp4"), clip("b.mp4"), clip("c.mp4")]
    products = Products(Saving(Path("out")), resume=True)

    def changed(sampling: Sampling, products: Products = products) -> list[str]:
        before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.jpg")}
        sample_tsn(paths, sampling, products)
        after = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.jpg")}
        return sorted(
            {path.parent.name for path, time in after.items() if time != before.get(path)}
        )

    assert changed(Sampling(8)) == ["a", "b", "c"]
    assert changed(Sampling(8)) == []
    with Path("out/.pttool-sampled.jsonl").open("a") as journal:
        journal.write('null\n[]\n{"name": "a.mp4"}\n')
    assert changed(Sampling(8)) == []
    Path("out/b/img_00003.jpg").unlink()
    Path("out/c/img_00003.jpg").write_bytes(b"other")
    assert changed(Sampling(8)) == ["b", "c"]
    clip("a.mp4", numbers=range(200, 240))
    assert changed(Sampling(8)) == ["a"]
    assert _numbers("out/a") == [200 + index for index in MIDDLES]
    assert changed(Sampling(4)) == ["a", "b", "c"]
    assert _names("out/a") == [f"img_{number:05d}.jpg" for number in range(1, 5)]
    quality = Products(Saving(Path("out"), quality=50), resume=True)
    assert changed(Sampling(4), quality) == ["a", "b", "c"]


def test_frames_that_are_there_stay_unless_told(clip: Make) -> None:
    path, saving = clip("a.mp4"), Saving(Path("out"))
    sample_tsn([path], Sampling(4), Products(saving))
    Path("out/a/notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="out/a: already exists"):
        sample_tsn([path], Sampling(2), Products(saving))
    assert len(_names("out/a")) == 5
    sample_tsn([path], Sampling(2), Products(saving, force=True))
    assert _names("out/a") == ["img_00001.jpg", "img_00002.jpg", "notes.txt"]


def test_a_folder_of_images_is_not_written_over(clip: Make) -> None:
    sample_tsn([clip("a.mp4")], Sampling(8), Products(Saving(Path())))
    with pytest.raises(UsageError, match="is an input"):
        sample_tsn([Path("a")], Sampling(8), Products(Saving(Path()), force=True))
    (entry,) = sample_tsn([Path("a")], Sampling(4), Products(Saving(Path("out")))).items
    assert entry["n"] == 8
    assert _numbers("out/a") == [MIDDLES[index] for index in (1, 3, 5, 7)]


def test_what_can_not_be_stacked_leaves_nothing(clip: Make) -> None:
    clip("a.mp4")
    sample_tsn([Path("a.mp4")], Sampling(2), Products(Saving(Path("seq"), "png")))
    odd = np.zeros((40, 60, 3), dtype=np.uint8)
    cv2.imwrite("seq/a/img_00002.png", odd)
    with pytest.raises(InputError, match="can't be stacked"):
        sample_tsn([Path("seq/a")], Sampling(2), Products(Saving(Path("out"), "npy")))
    assert not Path("out").exists()


def _images(folder: Path, count: int = 5) -> list[Path]:
    folder.mkdir(parents=True)
    paths = [folder / f"img_{number:05d}.jpg" for number in range(1, count + 1)]
    for number, path in enumerate(paths):
        cv2.imwrite(str(path), np.full((16, 16, 3), 40 * number, np.uint8))
    return paths


@pytest.mark.parametrize("pattern", ["shot/*.jpg", "shot/img_%05d.jpg", "shot"])
@pytest.mark.parametrize("how", ["resume", "force"])
def test_images_that_are_the_input_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = _images(Path("shot"))
    before = [path.read_bytes() for path in paths]
    products = Products(Saving(Path()), resume=how == "resume", force=how == "force")
    with pytest.raises(UsageError, match="is an input"):
        sample_tsn([Path(pattern)], Sampling(2), products)
    assert [path.read_bytes() for path in paths] == before


def test_pictures_of_others_are_replaced_by_force_alone(clip: Make) -> None:
    paths = _images(Path("out/b"))
    video = clip("b.mp4")
    with pytest.raises(UsageError, match="already exists"):
        sample_tsn([video], Sampling(2), Products(Saving(Path("out")), resume=True))
    assert all(path.exists() for path in paths)
    sample_tsn([video], Sampling(2), Products(Saving(Path("out")), force=True))
    assert _numbers("out/b") == [10, 30]


def test_a_resumed_video_whose_place_has_changed_is_sampled_there(clip: Make) -> None:
    products = Products(Saving(Path("out")), resume=True)
    first, second = clip("b.mp4"), clip("b.mkv")
    sample_tsn([first], Sampling(2), products)
    report = sample_tsn([first, second], Sampling(2), products)
    assert [item["output"] for item in report.items] == ["b.mp4", "b.mkv"]
    assert _numbers("out/b.mp4") == [10, 30]


def test_a_sequence_with_junk_counts_what_can_be_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = _images(Path("shot"))
    paths[1].write_bytes(b"junk")
    paths[3].write_bytes(b"")
    (item,) = sample_tsn([Path("shot")], Sampling(3)).items
    assert (item["n"], item["indices"]) == (3, [0, 1, 2])


def test_a_root_that_is_not_there_is_refused(clip: Make) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        sample_tsn([clip("b.mp4")], Sampling(2), root=Path("typo"))
