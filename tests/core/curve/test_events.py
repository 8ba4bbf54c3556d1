"""Event files as torch's SummaryWriter writes them, whole and damaged."""

from pathlib import Path

import pytest
from torch.utils.tensorboard import SummaryWriter

from pttool.core.curve.curve import curve
from pttool.core.curve.events import event_folders
from pttool.errors import InputError


def _write(folder: Path, scale: float = 1.0) -> Path:
    with SummaryWriter(folder) as writer:
        for step in range(40):
            writer.add_scalar("loss/train", scale / (step + 1), step * 10)
            if step % 10 == 9:
                writer.add_scalar("acc", step / 40, step * 10)
        writer.add_text("config", "lr: 0.1")
    (file,) = folder.glob("*tfevents*")
    return file


def test_a_folder_of_runs(tmp_path: Path) -> None:
    _write(tmp_path / "a")
    _write(tmp_path / "b", 2)
    plot, report = curve([tmp_path])
    assert (plot.x_label, plot.names) == ("step", ["a", "b"])
    assert [panel.title for panel in plot.panels] == ["loss/train", "acc"]
    summary = {(each["run"], each["column"]): each for each in report.summary["curves"]}
    assert summary["b", "loss/train"]["max"] == pytest.approx(2)
    assert summary["a", "loss/train"]["min_x"] == 390
    assert summary["a", "acc"]["points"] == 4
    assert report.notes == ()


def test_the_time_of_each_event_counts_from_the_first(tmp_path: Path) -> None:
    _, report = curve([_write(tmp_path / "a")], columns=["loss/*"], x="time_s")
    times = [item["x"] for item in report.items]
    assert 0 <= times[0] <= times[-1] < 60


def test_damage_and_a_cut_are_said_where_tensorboard_keeps_silent(tmp_path: Path) -> None:
    file = _write(tmp_path / "a")
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    _, report = curve([file])
    assert "events can be read: it is damaged, or still being written" in report.notes[0]
    middle = whole.index(b"loss/train", len(whole) // 2)
    file.write_bytes(whole[:middle] + b"L" + whole[middle + 1 :])
    _, report = curve([file], columns=["loss/train"])
    assert len(report.items) < 40
    assert "only its first" in report.notes[0]


def test_what_only_has_the_name_of_an_event_file(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(b"no event at all, though it is long enough for one")
    with pytest.raises(InputError, match="holds no events"):
        curve([file])
    (tmp_path / "empty").mkdir()
    assert event_folders(tmp_path / "empty") == []
    with pytest.raises(InputError, match="holds no event files"):
        curve([tmp_path / "empty"])


def test_a_damaged_run_hides_no_other_and_an_empty_one_is_said_to_be(tmp_path: Path) -> None:
    _write(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "events.out.tfevents.1").write_bytes(b"no event at all, though long enough")
    _write(tmp_path / "c")
    (tmp_path / "c" / "events.out.tfevents.0").write_bytes(b"no event at all, though long enough")
    plot, report = curve([tmp_path])
    assert plot.names == ["a", "c"]
    assert report.failure is not None
    assert "b" in report.failure.message
    assert any("events.out.tfevents.0: holds no events" in note for note in report.notes)
    (tmp_path / "d.tfevents").write_bytes(b"")
    with pytest.raises(InputError, match=r"d.tfevents: holds no scalars yet"):
        curve([tmp_path / "d.tfevents"])
