"""The output contract, with the wildest names that hypothesis can find."""

import ast
import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pttool import output
from pttool.core.report import Column, Report
from pttool.output import Format, Output, emit

Test = TypeVar("Test", bound=Callable[..., None])
# Every character but lone surrogates; those occur only as the undecodable bytes of a file's name.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
file_names = st.binary(min_size=1, max_size=20).map(os.fsdecode)
names = st.one_of(texts, file_names)
encodings = st.sampled_from(["utf-8", "cp1252", "ascii"])
NASTY = (
    "[bold]w", "[/red]", ":bomb:", "a\nb", "\x1b[31mred", "\t", '"', "头.weight", "w" * 300,
    " lead and trail ", "a,b", "\r", "\x00", "\u202egnp", "-", "\u2028", "'=1+1", "\udcff",
)  # fmt: skip


def _report(name: str) -> Report:
    columns = (Column("name", "Name"), Column("numel", "Elements", "count"))
    item = {"name": name, "numel": 1234567, "shape": [2, 3], "share": float("nan"), "none": None}
    fields = tuple(item)
    return Report(fields, columns, [item], {"name": name, "worst": float("inf")})


def _written(name: str, format: Format, encoding: str = "utf-8") -> bytes:
    """Return what a report of one item is as a file's or pipe's bytes."""
    read, write = os.pipe()
    stdout = SimpleNamespace(is_closed=False, descriptor=write, encoding=encoding)
    stdout.write = lambda payload: os.write(write, payload)
    with mock.patch.object(output, "_stdout", stdout):
        emit("test", _report(name), Output(format))
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        return stream.read()


def _each_nasty(test: Test) -> Test:
    for name in NASTY:
        test = example(name=name, encoding="cp1252")(test)
    return test


@_each_nasty
@given(name=names, encoding=encodings)
def test_json_carries_any_name_and_no_nan(name: str, encoding: str) -> None:
    document = json.loads(_written(name, Format.JSON, encoding), parse_constant=pytest.fail)
    assert document["schema"] == 1
    assert document["command"] == "test"
    assert document["items"] == [
        {"name": name, "numel": 1234567, "shape": [2, 3], "share": None, "none": None}
    ]
    assert document["summary"] == {"name": name, "worst": None}
    assert document["notes"] == []


@_each_nasty
@given(name=names, encoding=encodings)
def test_ndjson_carries_any_name_on_one_line(name: str, encoding: str) -> None:
    text = _written(name, Format.NDJSON, encoding)
    assert text.count(b"\n") == 1
    assert json.loads(text)["name"] == name


@_each_nasty
@given(name=names, encoding=encodings)
@pytest.mark.parametrize(("format", "delimiter"), [(Format.CSV, ","), (Format.TSV, "\t")])
def test_csv_and_tsv_carry_any_name(
    format: Format, delimiter: str, name: str, encoding: str
) -> None:
    text = _written(name, format, encoding).decode("utf-8", "surrogateescape")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert rows == [
        ["name", "numel", "shape", "share", "none"],
        [name, "1234567", "[2,3]", "", ""],
    ]


@_each_nasty
@given(name=names, encoding=encodings)
def test_a_piped_table_holds_the_whole_name_on_one_line(name: str, encoding: str) -> None:
    with mock.patch.dict(os.environ, {"COLUMNS": "40"}):
        lines = _written(name, Format.TABLE, encoding).split(b"\n")
    assert len(lines) == 3
    assert lines[1].isascii() or encoding != "ascii"
    shown, _, elements = lines[1].decode(encoding).rpartition("  ")
    assert elements.strip() == "1234567"
    assert _unescaped(shown.rstrip(" ")) == _unescaped(name.rstrip(" "))
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


def _unescaped(text: str) -> str:
    """Undo backslash escapes as Python writes them."""
    return re.sub(
        r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[ntr])",
        lambda escape: ast.literal_eval(f"'{escape[0]}'"),
        text,
    )


@given(name=texts.filter(str.isprintable))
def test_a_printable_name_is_shown_as_it_is(name: str) -> None:
    assert name.rstrip(" ") in _written(name, Format.TABLE).decode()


def test_a_file_name_that_is_not_utf8_comes_out_as_its_bytes() -> None:
    assert b"\n\xff\xfe," in _written(os.fsdecode(b"\xff\xfe"), Format.CSV)
