"""What users type for a model, an input and a keyword."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pttool.core.model.spec import (
    DTYPES,
    FileModel,
    ImportedModel,
    InputSpec,
    PublishedModel,
    parse_input,
    parse_keyword,
    parse_model,
)
from pttool.errors import InputError, PttoolError, UsageError

identifiers = st.from_regex(r"[a-z_][a-z0-9_]*", fullmatch=True).filter(
    lambda name: name not in DTYPES
)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("3,224,224", InputSpec((3, 224, 224))),
        ("7", InputSpec((7,))),
        (" 3, 5", InputSpec((3, 5))),
        ("int64:16", InputSpec((16,), "int64")),
        ("long:16", InputSpec((16,), "int64")),
        ("ids:16", InputSpec((16,), None, "ids")),
        ("ids:int64:16", InputSpec((16,), "int64", "ids")),
        ("bf16:2,3", InputSpec((2, 3), "bfloat16")),
    ],
)
def test_inputs_that_make_sense(text: str, spec: InputSpec) -> None:
    assert parse_input(text) == spec


@given(
    st.lists(st.integers(1, 9999), min_size=1, max_size=4),
    st.none() | st.sampled_from(sorted(DTYPES)),
    st.none() | identifiers,
)
def test_an_input_round_trips(shape: list[int], dtype: str | None, name: str | None) -> None:
    dimensions = ",".join(map(str, shape))
    text = ":".join(part for part in (name, dtype, dimensions) if part is not None)
    assert parse_input(text) == InputSpec(tuple(shape), dtype and DTYPES[dtype], name)


@pytest.mark.parametrize(
    "text",
    ["", "3,", "3,0,224", "3,-1", "3,x,224", "3.5", "a:b:c:3", "ids:int46:3", "a-b:3", ":3",
     "1e3", "٣,٣", "9999999999,9999999999", "99999999999999999999"],
)  # fmt: skip
def test_inputs_that_make_none_are_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(text))):
        parse_input(text)


@given(st.text(max_size=30))
def test_no_text_crashes_a_parser(text: str) -> None:
    for parse in (parse_input, parse_keyword, parse_model):
        with contextlib.suppress(PttoolError):
            parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("num_classes=10", ("num_classes", 10)),
        ("widths=[1, 2]", ("widths", [1, 2])),
        ("norm='batch'", ("norm", "batch")),
        ("norm=None", ("norm", None)),
        ("rate=-1e-3", ("rate", -1e-3)),
    ],
)
def test_keywords_are_literals(text: str, value: object) -> None:
    assert parse_keyword(text) == value


@pytest.mark.parametrize(
    "text",
    ["x=__import__('os')", "x=open('f')", "x=batch", "x=", "x", "=3", "1x=3", "x=" + "(" * 10**5],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_keywords_are_never_evaluated(text: str) -> None:
    with pytest.raises(UsageError):
        parse_keyword(text)


def test_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("import nothing\n\nclass First: ...\n")
    assert parse_model("resnet18") == PublishedModel("resnet18")
    assert parse_model("net.py:Net") == FileModel(Path("net.py"), "Net")
    assert parse_model("a/b:Net") == FileModel(Path("a/b"), "Net")
    assert parse_model("torchvision.models:resnet18") == ImportedModel(
        "torchvision.models", "resnet18"
    )
    with pytest.raises(UsageError) as no_attribute:
        parse_model("net.py")
    assert no_attribute.value.hint == "net.py:First"
    with pytest.raises(InputError, match="is a folder"):
        parse_model(".")
