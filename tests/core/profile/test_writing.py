"""How a profile is written: words, tables, pictures, pages, traces."""

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pttool.core.profile.types import (
    PHASES,
    Finding,
    HotLine,
    Loader,
    ModuleTime,
    OpRow,
    Ops,
    Profile,
    Span,
    Steady,
    StepTimes,
)
from pttool.core.profile.windows import parse_window
from pttool.core.profile.writing.flame import flame_svg, folded
from pttool.core.profile.writing.page import page
from pttool.core.profile.writing.report import report, sorted_ops
from pttool.core.profile.writing.sections import headline, sections
from pttool.core.profile.writing.timeline import timeline_svg
from pttool.core.profile.writing.trace import write_trace
from pttool.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert(1)</script>"
OPS = (
    OpRow("aten::add", 9, 1.0, 8.0, 100),
    OpRow("aten::mm", 2, 5.0, 6.0, 50),
    OpRow("aten::to", 1, 1.0, 1.0, 400),
)
PROFILE = Profile(
    script="train.py",
    exit_code=0,
    interrupted=False,
    final=True,
    wall_s=10.0,
    phases_s=dict.fromkeys(PHASES, 1.0),
    steps=1,
    overhead_s=0.5,
    steady=Steady(20, 4.0, {"data_wait": 3.0, "forward": 1.0}),
    step_ms=StepTimes(200.0, 210.0, 220.0),
    loader=Loader(2, 8, 1, 40, 100.0, 12.5, 0.25, 0.5, 3, False, 2),
    hot_lines=(HotLine("/home/me/data.py", 8, "load", 0.75),),
    modules=(ModuleTime("conv1", "Conv2d", 3.0, 5),),
    module_steps=4,
    findings=(Finding("gpu-idle", "warning", 0.5, "the GPU rests", "give it work"),),
    ops=Ops(OPS, steps=3, wall_s=1.0),
    timeline=(Span(0.0, 4.0, {"startup": 4.0}), Span(4.0, 10.0, {"forward": 2.0, "save": 1.0})),
    stacks={("forward", "f (a.py:1)"): 3, ("forward", "f (a.py:1)", "g (a.py:9)"): 1},
    notes=("seen",),
)


def test_the_report_holds_ops_and_summary() -> None:
    told = report(PROFILE)
    assert [item["name"] for item in told.items] == ["aten::mm", "aten::add", "aten::to"]
    assert told.items[0] == {
        "name": "aten::mm", "calls": 2, "self_ms": 5.0, "total_ms": 6.0, "self_bytes": 50,
        "shapes": None,
    }  # fmt: skip
    summary = told.summary
    assert list(summary["phases_s"]) == list(PHASES)
    assert summary["steady"]["data_wait_fraction"] == 0.75
    assert summary["steady"]["compute_ms"] == pytest.approx(50)
    assert (summary["loader"].workers_needed, summary["step_ms"].p90) == (3, 210.0)
    assert told.notes == ("seen",)


@pytest.mark.parametrize(
    ("key", "first"),
    [("self", "aten::mm"), ("total", "aten::add"), ("calls", "aten::add"), ("memory", "aten::to")],
)
def test_ops_are_sorted_by_any_column(key: str, first: str) -> None:
    assert sorted_ops(OPS, key)[0].name == first


def test_sections_say_it_in_order_and_keep_to_the_top() -> None:
    told = {section.heading: section for section in sections(PROFILE, top=1)}
    assert list(told) == [
        "train.py: 10.00 s, 1 step, exit code 0",
        "Where the time went",
        "Findings",
        "Data loading",
        "Lines that make the batches",
        "Modules in forward of 4 steps, without what they call",
        "Ops of 3 steps",
    ]
    assert list(told["Findings"].lines) == [
        "warning: gpu-idle: the GPU rests",
        "  fix: give it work",
    ]
    assert told["Data loading"].lines[0] == (
        "2 workers, batch size 8, 100 ms a batch, 12.5 ms a sample, 25 % of it collate, "
        "50 % of it CPU"
    )
    ops = told["Ops of 3 steps"].table
    assert ops is not None
    assert [item["name"] for item in ops.items] == ["aten::mm"]
    assert not any("Ops" in section.heading for section in sections(PROFILE, top=0))


def test_the_headline_tells_a_kill_and_an_interrupt() -> None:
    assert headline(replace(PROFILE, final=False, exit_code=137)).endswith(
        "exit code 137, killed, so its last 2 s may be missing"
    )
    assert headline(replace(PROFILE, interrupted=True, exit_code=130)).endswith("interrupted")


def test_folded_stacks_are_one_a_line() -> None:
    assert folded(PROFILE.stacks) == "forward;f (a.py:1) 3\nforward;f (a.py:1);g (a.py:9) 1\n"
    assert folded({("other", "a;b\nc"): 2}) == "other;a,b\\nc 2\n"


def test_widths_of_a_flame_graph_are_shares_of_the_samples() -> None:
    root = ElementTree.fromstring(flame_svg(PROFILE.stacks))
    widths = {
        (frame.findtext(f"{SVG}title") or "").partition(" (a.py")[0].partition(":")[0]: float(
            frame.findall(f"{SVG}rect")[0].attrib["width"]
        )
        for frame in root.iter(f"{SVG}g")
    }
    assert widths == {"all": 1200.0, "forward": 1200.0, "f": 1200.0, "g": 300.0}


def test_an_empty_flame_graph_is_still_a_picture() -> None:
    assert ElementTree.fromstring(flame_svg({})).tag == f"{SVG}svg"


def test_a_timeline_is_as_long_as_the_run_and_full_of_phases() -> None:
    root = ElementTree.fromstring(timeline_svg(PROFILE.timeline))
    boxes = [box.attrib for box in root.iter(f"{SVG}rect")]
    assert [(float(box["x"]), float(box["width"])) for box in boxes] == [
        (0, 480), (480, 720), (480, 720),
    ]  # fmt: skip
    assert [float(box["height"]) for box in boxes] == [120, 80, 40]


def test_the_page_shows_all_and_escapes_names() -> None:
    evil = replace(
        PROFILE,
        script=EVIL,
        ops=Ops((OpRow(EVIL, 1, 1.0, 1.0),), steps=1),
        hot_lines=(HotLine(f"/{EVIL}", 1, EVIL, 1.0),),
        modules=(ModuleTime(EVIL, EVIL, 1.0, 1),),
        findings=(Finding("gpu-idle", "warning", 0.5, EVIL, EVIL),),
        stacks={(EVIL, EVIL): 1},
        notes=(EVIL,),
    )
    text = page(evil)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 10
    for part in ("Where the time went", "Findings", "Flame graph", "Modules", "Ops of 1 step"):
        assert part in text


def test_traces_of_several_windows_become_one(tmp_path: Path) -> None:
    windows = [tmp_path / "trace-7-0.json", tmp_path / "trace-7-1.json"]
    for number, window in enumerate(windows):
        events = [{"ph": "X", "name": f"op{number}", "ts": number}, {"ph": "s", "id": 1, "ts": 2}]
        window.write_text(json.dumps({"traceEvents": events}))
    plain, packed = io.BytesIO(), io.BytesIO()
    write_trace(windows, plain, compressed=False)
    write_trace(windows, packed, compressed=True)
    assert gzip.decompress(packed.getvalue()) == plain.getvalue()
    events = json.loads(plain.getvalue())["traceEvents"]
    assert [event.get("name") for event in events] == ["op0", None, "op1", None]
    assert len({event["id"] for event in events if "id" in event}) == 2


def test_a_trace_without_windows_is_empty_but_whole() -> None:
    stream = io.BytesIO()
    write_trace([], stream, compressed=False)
    assert json.loads(stream.getvalue())["traceEvents"] == []


def test_a_window_is_two_numbers() -> None:
    assert parse_window("20:5") == (20, 5)
    for wrong in ("5", "5:", "5:0", "-1:3", "a:b", "5:3:1", "٣:٣"):
        with pytest.raises(UsageError, match="SKIP:STEPS"):
            parse_window(wrong)
