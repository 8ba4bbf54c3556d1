"""Logs as programs really write them: growing, resumed, with gaps, NaN and nested objects."""

import json
from math import isnan, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pttool.core.curve.choice import run_names
from pttool.core.curve.curve import curve
from pttool.core.curve.logs import Log
from pttool.core.curve.smoothing import smoothed
from pttool.core.plots.picture import picture
from pttool.core.plots.terminal import draw
from pttool.errors import InputError, UsageError


def _points(path: Path, column: str, **options: str) -> list[tuple[float, float]]:
    _, report = curve([path], columns=[column], **options)  # type: ignore[arg-type]
    return [(item["x"], item["value"]) for item in report.items]


def test_a_lightning_log_has_gaps(tmp_path: Path) -> None:
    log = tmp_path / "metrics.csv"
    log.write_text("epoch,step,train_loss,val_loss\n0,49,0.9,\n0,99,,0.8\n1,149,0.7,\n")
    assert _points(log, "train_loss") == [(49, 0.9), (149, 0.7)]
    assert _points(log, "val_loss", x="epoch") == [(0, 0.8)]
    assert _points(log, "val_loss", x="row") == [(1, 0.8)]


def test_an_ultralytics_log_pads_its_header(tmp_path: Path) -> None:
    log = tmp_path / "results.csv"
    log.write_text("      epoch,   train/box_loss\n      1,      1.5\n      2,      1.25\n")
    assert _points(log, "train/*") == [(1, 1.5), (2, 1.25)]


def test_a_trainer_state_holds_a_list_and_texts_that_are_numbers(tmp_path: Path) -> None:
    state = {"best": 1, "log_history": [{"step": 5, "loss": "0.5"}, {"step": 10, "eval_loss": 0.4}]}
    log = tmp_path / "trainer_state.json"
    log.write_text(json.dumps(state, indent=2))
    assert _points(log, "loss") == [(5, 0.5)]
    assert _points(log, "eval_loss") == [(10, 0.4)]


def test_json_lines_hold_nan_and_objects(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"step": 0, "train": {"loss": NaN}}\n{"step": 1, "train": {"loss": 2}, "a": true}\n'
    )
    (first, second) = _points(log, "train.loss")
    assert isnan(first[1])
    assert second == (1, 2)
    _, report = curve([log])
    assert report.notes == (f"{log}: train.loss: 1 of 2 values are no numbers, the first at 0",)
    assert report.summary["curves"][0]["min"] == 2


@pytest.mark.parametrize(
    "text",
    ["step,loss\n1,0.5\n2,0.4\n3,", '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n{"st'],
    ids=["csv", "jsonl"],
)
def test_a_log_that_is_being_written(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    assert _points(log, "loss") == [(1, 0.5), (2, 0.4)]
    (tmp_path / "cut.csv").write_text("step,loss,acc\n1,0.5,0.1\n2,0.4")
    _, report = curve([tmp_path / "cut.csv"])
    assert [item["x"] for item in report.items] == [1, 1]
    assert "cut short" in report.notes[0]


def test_a_resumed_run_repeats_its_header(tmp_path: Path) -> None:
    log = tmp_path / "log.tsv"
    log.write_text("step\tloss\n1\t0.5\nstep\tloss\n2\t0.4\n")
    assert _points(log, "loss") == [(1, 0.5), (2, 0.4)]


def test_a_table_without_a_header_has_numbers_for_names(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1;0.5\n2;0.4\n")
    assert _points(log, "2") == [(0, 0.5), (1, 0.4)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.log", "Epoch 1: loss 0.5\nEpoch 2: loss 0.4\n", "is a text log"),
        ("train.log", "2026-01-01, epoch 1, loss 0.5\n2026-01-01, epoch 2, loss 0.4\n", "text log"),
        ("empty.csv", "", "is empty"),
        ("header.csv", "step,loss\n", "no rows"),
        ("names.csv", "a,b\nx,y\n", "no numbers"),
        ("twice.csv", "a,a\n1,2\n", "2 columns 'a'"),
        ("wide.csv", "a,b\n1,2,3\n1,2\n", "line 2 has 3 cells, the header 2"),
        ("bad.jsonl", '{"a": 1\nnope\n{"a": \n', "line 1 is no JSON"),
        ("list.jsonl", '{"a": 1}\n[1]\n{"a": 2}\n', "line 2 is no JSON object"),
        ("scalar.json", "[1, 2]", "no list of objects"),
        ("deep.jsonl", "[" * 100_000 + "\n1\n", "nested too deeply"),
        ("zip.csv", "a,b\n\0\0", "is no text"),
    ],
)
def test_what_is_no_log_is_said_by_name(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        curve([tmp_path / name])
    assert caught.value.message.startswith(str(tmp_path / name))
    assert said in caught.value.message


def test_columns_are_chosen_by_name_or_glob(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss,val[0],val_acc,note\n1,2,3,4,x\n")
    plot, _ = curve([log], columns=["val[0]", "val_*"])
    assert [panel.title for panel in plot.panels] == ["val[0]", "val_acc"]
    with pytest.raises(UsageError, match="matches 'los'") as caught:
        curve([log], columns=["los"])
    assert caught.value.hint == "Did you mean 'loss'?"
    with pytest.raises(InputError, match="'x' in line 2"):
        curve([log], columns=["note"])
    with pytest.raises(UsageError, match="'epok'"):
        curve([log], x="epok")


def test_a_column_with_a_stray_text_is_left_out_aloud(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss,acc\n1,0.5,1\n2,oops,2\n3,n/a,3\n")
    plot, report = curve([log])
    assert [panel.title for panel in plot.panels] == ["acc"]
    assert report.notes == (f"{log}: column 'loss' is left out: 'oops' in line 3",)


def test_many_columns_are_named_not_drawn(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(",".join(f"c{k}" for k in range(9)) + "\n" + ",".join("123456789") + "\n")
    plot, report = curve([log])
    assert len(plot.panels) == 6
    assert report.notes == ("3 more columns; choose with -c: c6, c7, c8",)


def test_runs_share_a_usual_x_or_are_drawn_over_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Step,epoch,loss\n10,1,0.5\n")
    (tmp_path / "b.jsonl").write_text('{"epoch": 2, "loss": 1}\n')
    (tmp_path / "c.csv").write_text("loss\n3\n")
    assert curve([tmp_path / "a.csv"])[0].x_label == "step"
    plot, _ = curve([tmp_path / "a.csv", tmp_path / "b.jsonl"])
    assert (plot.x_label, plot.names) == ("epoch", ["a.csv", "b.jsonl"])
    assert curve([tmp_path / "a.csv", tmp_path / "c.csv"])[0].x_label == "row"


def test_one_bad_log_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,loss\n1,0.5\n")
    _, report = curve([tmp_path / "none.csv", tmp_path / "a.csv"])
    assert len(report.items) == 1
    assert report.failure is not None
    assert "none.csv" in report.failure.message


def test_what_has_no_place_on_a_log_scale_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,loss\n1,0.5\n2,0\n3,-1\n")
    _, report = curve([tmp_path / "a.csv"], log=True)
    assert "2 of 3 values are not above 0" in report.notes[0]


def test_runs_are_called_by_what_tells_them_apart() -> None:
    def names(*paths: str) -> list[str]:
        return run_names([Log(path) for path in paths])

    assert names("runs/a/metrics.csv", "runs/b/metrics.csv") == ["a", "b"]
    assert names("a/1.csv", "b/2.csv") == ["a/1.csv", "b/2.csv"]
    assert names("tb", "tb/x") == ["tb", "tb/x"]
    assert names("x/y.csv") == ["x/y.csv"]


def test_smoothing_is_tensorboards() -> None:
    """Worked by hand: (0.5*0 + 0.5*1)/0.5, then (0.5*0.5 + 0.5*3)/0.75, and so on."""
    assert smoothed([1, 3, nan, 5], 0.5)[:2] == pytest.approx([1, 1.75 / 0.75])
    last = smoothed([1, 3, nan, 5], 0.5)
    assert isnan(last[2])
    assert last[3] == pytest.approx((0.5 * 1.75 + 2.5) / 0.875)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 0.999))
def test_a_smoothed_curve_stays_within_its_values(values: list[float], weight: float) -> None:
    slack = 1e-6 * (1 + max(map(abs, values)))
    assert all(
        min(values) - slack <= each <= max(values) + slack for each in smoothed(values, weight)
    )
    assert smoothed(values, 0) == values


def test_a_run_that_began_again_draws_no_line_back(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n1,4\n2,3\n3,2\n2,2.5\n3,1\n")
    ((panel,), report) = curve([log])[0].panels, curve([log])[1]
    (line,) = panel.curves
    assert list(panel.pieces(line, line.y)) == [[(1, 4), (2, 3), (3, 2)], [(2, 2.5), (3, 1)]]
    assert len(report.items) == 5


def test_what_has_no_place_on_an_axis_is_noted_and_the_rest_drawn(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n1,1e308\n2,-1e308\ninf,1\nnan,2\n4,3\n")
    plot, report = curve([log])
    said = "\n".join(report.notes)
    assert "2 of 5 points have no place on the x axis" in said
    assert "2 of 5 values are too large to draw" in said
    assert draw(plot, width=60, colour=False, ascii_only=True).count("*") == 1
    assert picture(plot, "png").startswith(b"\x89PNG")


def test_a_torn_line_is_left_out_aloud(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2}\n{"step": 2, "lo{"step": 2, "loss": 1}\n')
    _, report = curve([log])
    assert [item["value"] for item in report.items] == [2]
    assert "1 lines are left out: line 2 is no JSON" in report.notes[0]
