"""What is staged takes its name as a whole; what was left behind goes, what is in use stays."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from pttool.core.features.manifest import read_manifest, remove_run
from pttool.core.features.ranks import Shard
from pttool.core.features.staging import place_text, remove_abandoned, staged
from pttool.errors import UnavailableError


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    place_text(tmp_path, Shard(), "ids.txt", "a\n")
    with contextlib.suppress(KeyError), staged(tmp_path, Shard()) as folder:
        (folder / "ids.txt").write_text("half")
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["ids.txt"]
    assert (tmp_path / "ids.txt").read_text() == "a\n"


def test_what_the_system_refuses_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").mkdir()
    with pytest.raises(UnavailableError, match="Is a directory") as refused:
        place_text(tmp_path, Shard(), "ids.txt", "a\n")
    assert "the same command again" in str(refused.value.hint)


def test_what_killed_processes_left_goes_and_what_is_in_use_stays(tmp_path: Path) -> None:
    for name in ("0-of-2-x", "1-of-2-x", "3-of-4-x"):
        (tmp_path / f".pttool-{name}").mkdir()
    with staged(tmp_path, Shard(0, 2)) as in_use, staged(tmp_path, Shard()) as other:
        remove_abandoned(tmp_path, Shard(0, 2))
        assert {path.name for path in tmp_path.iterdir()} == {
            in_use.name,
            other.name,
            ".pttool-1-of-2-x",  # of a shard that may be at work where there are no locks
        }


def test_removing_a_run_stays_in_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "mine.txt").touch()
    (out / "mine").mkdir()
    os.symlink(out / "mine", out / "linked")
    found = {
        "configuration": {"inputs": {"count": 1}},
        "parts": {"size": 1},
        "layers": {"..": {}, "": {}, ".": {}, "../mine.txt": {}, "linked": {}},
        "totals": None,
    }
    (out / "manifest.json").write_text(json.dumps(found))
    manifest = read_manifest(out)
    assert manifest is not None
    remove_run(out, manifest)
    assert (tmp_path / "mine.txt").exists()
    assert {path.name for path in out.iterdir()} == {"mine", "linked"}
