"""10,000 damaged files: each is reported on without NaN, or refused in one line; nothing else."""

import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pttool.core.eval.report import Options, make
from pttool.core.eval.samples.predictions import open_predictions
from pttool.core.eval.types import Task
from pttool.data_formats import json_document
from pttool.errors import PttoolError

Arrays = Mapping[str, NDArray[Any]]
ROWS = 9
GENERATOR = np.random.default_rng(5)
# A byte per label: a damaged one is still a small class, and its report soon written.
LABEL, PREDICTION = GENERATOR.integers(0, 4, (2, ROWS)).astype(np.uint8)
SCORES = GENERATOR.normal(size=(ROWS, 4)).astype(np.float32)
SETS = GENERATOR.random((ROWS, 4)) < 0.4
CLASSES: Arrays = {"label": LABEL, "prediction": PREDICTION, "index": np.arange(ROWS)}
LOGITS: Arrays = {"label": LABEL, "logits": SCORES}
PROBABILITIES: Arrays = {"label": LABEL, "probs": np.full((ROWS, 4), 0.25, np.float16)}
MULTILABEL: Arrays = {"label": SETS, "prediction": SETS[::-1], "logits": SCORES}
NAMES: Arrays = {"label": np.array(["cat", "dog", "ant"] * 3), "prediction": np.array(["dog"] * 9)}
FLAT = (CLASSES, NAMES)
NUMBERS = (CLASSES, LOGITS, PROBABILITIES, MULTILABEL)
ALL = (*NUMBERS, NAMES)
# What breaks readers: other types, shapes, sizes, ends of numbers, text that is none.
TOKENS = (
    b"-1", b"nan", b"inf", b"1e400", b"null", b"true", b"[]", b"[[1]]", b"{}", b'"', b"'", b"0.5",
    b"99999999999999999999", b"9" * 400, b"\0", b"\xff", b"\xe2\x80\xa8", b"\r", b"\n", b",", b"\t",
    b"|O", b"<f8", b"<U3", b"|S0", b">i2", b"(0,)", b"()", b"(9, 0)", b"(-9,)", b"(2147483648, 4)",
    b"True", b"PK\x05\x06", b"\x93NUMPY", b"PAR1", b"\x80\x04", b"\xff" * 8, b"\0" * 8,
)  # fmt: skip


def npy(arrays: Arrays) -> dict[str, bytes]:
    files = {}
    for name, array in arrays.items():
        content = io.BytesIO()
        np.save(content, array)
        files[name] = content.getvalue()
    return files


def zipped(members: Mapping[str, bytes], compression: int) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)
    return content.getvalue()


def separated(arrays: Arrays, delimiter: str) -> bytes:
    rows = [list(arrays), *zip(*(array.tolist() for array in arrays.values()), strict=True)]
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows).encode()


def jsonl(arrays: Arrays) -> bytes:
    columns = {name: array.tolist() for name, array in arrays.items()}
    rows = ({name: column[row] for name, column in columns.items()} for row in range(ROWS))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(arrays: Arrays) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    content = io.BytesIO()
    table = arrow.table({name: array.tolist() for name, array in arrays.items()})
    pytest.importorskip("pyarrow.parquet").write_table(table, content)
    return content.getvalue()


def pt(arrays: Arrays) -> bytes:
    content = io.BytesIO()
    torch.save({name: torch.tensor(array.tolist()) for name, array in arrays.items()}, content)
    return content.getvalue()


class Mutator:
    """Damages bytes in a few places, always the same way from the same seed."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def __call__(self, content: bytes) -> bytes:
        damaged = bytearray(content)
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            self._damage(damaged)
        return bytes(damaged) if damaged != content else self(content)

    def one_of(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Damage one of several."""
        chosen = self.random.choice(list(files))
        return {name: self(file) if name == chosen else file for name, file in files.items()}

    def _damage(self, content: bytearray) -> None:
        place = self.random.randint(0, len(content))
        end = place + self.random.choice((0, 1, 1, 2, 4, 8, 100))
        match self.random.randrange(6):
            case 0 if place < len(content):
                content[place] ^= 1 << self.random.randrange(8)
            case 1:
                content[place:end] = self.random.randbytes(self.random.randrange(9))
            case 2:
                content[place:end] = content[place:end] * 2
            case 3:
                source = self.random.randint(0, len(content))
                content[place:end] = content[source : source + end - place]
            case 4 if self.random.random() < 0.3:
                del content[place:]
            case _:
                token = self.random.choice(TOKENS)
                content[place : place + self.random.choice((0, len(token)))] = token


def npz(arrays: Arrays, mutate: Mutator, compression: int) -> bytes:
    """Damage the zip, or an array in it, under a checksum that is right."""
    if mutate.random.random() < 0.5:
        return mutate(zipped(npy(arrays), compression))
    return zipped(mutate.one_of(npy(arrays)), compression)


Damage = Callable[[Arrays, Mutator], Mapping[str, bytes]]
# Of each format how many, which tables, and a damaged table's files.
FORMATS: dict[str, tuple[int, Sequence[Arrays], Damage]] = {
    "npz": (2500, ALL, lambda a, m: {"p.npz": npz(a, m, zipfile.ZIP_STORED)}),
    "deflated": (1500, ALL, lambda a, m: {"p.npz": npz(a, m, zipfile.ZIP_DEFLATED)}),
    "npy": (1600, ALL, lambda a, m: m.one_of(npy(a))),
    "csv": (1500, FLAT, lambda a, m: {"p.csv": m(separated(a, ","))}),
    "tsv": (500, FLAT, lambda a, m: {"p.tsv": m(separated(a, "\t"))}),
    "jsonl": (1700, ALL, lambda a, m: {"p.jsonl": m(jsonl(a))}),
    "parquet": (400, ALL, lambda a, m: {"p.parquet": m(parquet(a))}),
    "pt": (300, NUMBERS, lambda a, m: {"p.pt": m(pt(a))}),
}


def test_ten_thousand_files_are_damaged() -> None:
    assert sum(count for count, _, _ in FORMATS.values()) == 10_000


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_reported_on_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    count, tables, damage = FORMATS[name]
    reported = 0
    for number in range(count):
        mutate = Mutator(f"{name} {number}")
        arrays = mutate.random.choice(tables)
        files = damage(arrays, mutate)
        for file, content in files.items():
            Path(file).write_bytes(content)
        task: Task = "multilabel" if arrays is MULTILABEL else "classes"
        message = report_or_refusal(files, task, block_rows=mutate.random.choice((2, 100)))
        assert "\n" not in message, (name, number)
        reported += not message
    assert 0 < reported < count


def report_or_refusal(files: Mapping[str, bytes], task: Task, block_rows: int) -> str:
    """Write the report as JSON, which takes no NaN, or return the message of a refusal."""
    options: dict[str, Any] = {"task": task, "block_rows": block_rows}
    named = [Path(file) for file in files]
    if "label" in files:  # arrays: the label, then scores or a prediction
        answer = list(files)[1]
        options |= {"true": "label", "pred" if answer == "prediction" else "scores": answer}
        named = []
    try:
        made = make(open_predictions(named, **options), Options())
    except PttoolError as error:
        return error.message + (error.hint or "")
    assert all(json_document("eval report", made.report, ascii_only=False))
    return ""
