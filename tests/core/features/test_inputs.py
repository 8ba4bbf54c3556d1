"""Which pictures are found, in what order, and what they are called."""

import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pttool.core.features.inputs import list_inputs
from pttool.errors import InputError, UnavailableError, UsageError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def touch(folder: Path, *names: str) -> None:
    """Make empty files."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def ids(*paths: Path | str, **options: Any) -> list[str]:
    """Return the ids of the inputs found."""
    return list(list_inputs([Path(path) for path in paths], **options).ids())


def test_a_folder_is_gone_through_in_natural_order_however_its_disk_lists_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = ["a/1.jpg", "a/2.png", "a/10.JPG", "a/b/0.webp", "a10.gif", "b/1.jpg", "b/ü 图.png"]
    touch(folder, *reversed(ordered))
    assert ids(folder) == ordered
    scandir = os.scandir

    class Backwards:
        def __init__(self, path: str) -> None:
            self._entries = scandir(path)

        def __enter__(self) -> Sequence["os.DirEntry[str]"]:
            with self._entries as entries:
                return sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr(os, "scandir", Backwards)
    assert ids(folder) == ordered


def test_ids_are_the_same_wherever_a_folder_lies(folder: Path) -> None:
    touch(folder, "there/imgs/a/1.jpg", "there/imgs/2.jpg")
    for named in (folder / "there/imgs", "there/imgs", "./there/../there/imgs/"):
        assert ids(named) == ["2.jpg", "a/1.jpg"]


def test_ids_are_relative_to_the_root(folder: Path) -> None:
    touch(folder, "x/a/1.jpg", "x/b/1.jpg")
    assert ids("x/a", "x/b") == ["x/a/1.jpg", "x/b/1.jpg"]  # as they are named
    assert ids(folder / "x/a", folder / "x/b") == ["a/1.jpg", "b/1.jpg"]
    assert ids("x/a/1.jpg") == ["x/a/1.jpg"]
    assert ids("../here/x/b/1.jpg", "x/a") == ["b/1.jpg", "a/1.jpg"]
    assert ids("x/b/1.jpg", root=Path("x/b")) == ["1.jpg"]
    with pytest.raises(UsageError, match=r"x/a/1\.jpg: is not below .*x/b"):
        ids("x/a/1.jpg", root=Path("x/b"))


def test_files_keep_the_order_of_their_list_and_come_once(folder: Path) -> None:
    touch(folder, "10.jpg", "9.jpg", "notes", "a/1.jpg")
    inputs = list_inputs([Path(name) for name in ("10.jpg", "9.jpg", "a", "./10.jpg", "notes")])
    assert list(inputs.ids()) == ["10.jpg", "9.jpg", "a/1.jpg", "notes"]
    assert inputs.notes == ("1 files are named again: each is taken once",)


def test_what_is_not_named_as_a_picture_is_left_out_of_a_folder_and_counted(folder: Path) -> None:
    touch(folder, "1.jpg", "labels.txt", "clip.mp4", ".DS_Store", "._1.jpg", ".cache/2.jpg")
    inputs = list_inputs([folder])
    assert list(inputs.ids()) == ["1.jpg"]
    assert inputs.notes == (
        "1 videos are left out: --frames K takes K frames of each",
        "1 files are left out that aren't named as pictures",
    )


def test_links_are_followed_but_not_in_circles(folder: Path) -> None:
    touch(folder, "imgs/1.jpg", "elsewhere/2.jpg")
    (folder / "imgs/far").symlink_to(folder / "elsewhere")
    (folder / "imgs/up").symlink_to(folder / "imgs")
    assert ids(folder / "imgs") == ["1.jpg", "far/2.jpg"]


def test_each_video_gives_as_many_frames_as_wanted(folder: Path) -> None:
    touch(folder, "1.jpg", "a/clip.MP4")
    inputs = list_inputs([folder], frames=3)
    assert list(inputs.ids()) == ["1.jpg", "a/clip.MP4#0", "a/clip.MP4#1", "a/clip.MP4#2"]
    assert [one.frame for one in inputs] == [None, 0, 1, 2]
    assert {one.path for one in inputs[1:]} == {folder / "a/clip.MP4"}
    with pytest.raises(UsageError, match=r"clip\.MP4: is a video"):
        ids("a/clip.MP4")


def test_a_name_is_one_line_and_unlike_all_others(folder: Path) -> None:
    touch(folder, "a\n1.jpg", os.fsdecode(b"\xff.jpg"))
    assert ids(folder) == ["a\\n1.jpg", "\\udcff.jpg"]
    assert [one.path.exists() for one in list_inputs([folder])] == [True, True]
    touch(folder, "a\\n1.jpg")
    with pytest.raises(UsageError, match=r"two inputs would have the id a\\n1\.jpg"):
        ids(folder)


def test_a_missing_file_is_no_hindrance_among_others_and_one_alone_is(folder: Path) -> None:
    touch(folder, "1.jpg")
    assert ids("1.jpg", "2.jpg") == ["1.jpg", "2.jpg"]
    with pytest.raises(InputError, match=r"imgz: No such file or directory"):
        ids("imgz")


def test_no_pictures_are_an_error_that_says_what_is_there(folder: Path) -> None:
    touch(folder, "clip.avi")
    with pytest.raises(InputError, match="no pictures in it") as refused:
        ids(folder)
    assert refused.value.hint is not None
    assert "--frames" in refused.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_without_permission_stops_the_run(folder: Path) -> None:
    touch(folder, "1.jpg", "secret/2.jpg")
    (folder / "secret").chmod(0)
    with pytest.raises(UnavailableError, match="secret: no permission"):
        ids(folder)


def test_slices_and_numbers_agree(folder: Path) -> None:
    touch(folder, *(f"{number}.jpg" for number in range(10)))
    inputs = list_inputs([folder])
    assert [one.id for one in inputs[3:5]] == [inputs[3].id, inputs[4].id] == ["3.jpg", "4.jpg"]
    assert len(inputs[:7]) == 7


def test_a_long_list_takes_little_memory(folder: Path) -> None:
    paths = [Path(f"{number:06}.jpg") for number in range(20_000)]
    touch(folder, "000000.jpg")
    tracemalloc.start()
    inputs = list_inputs(paths)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(inputs) < 150
