"""Saved predictions of any format, as one stream of samples with class numbers."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pttool.core.eval.classes import read_classes
from pttool.core.eval.formats import open_arrays, open_table
from pttool.core.eval.keys import Keys, check_shapes, choose_keys
from pttool.core.eval.numbering import WHOLE, Numbering, as_digits, numbering_of
from pttool.core.eval.pixels import of_pixels
from pttool.core.eval.samples import (
    BLOCK_ROWS,
    MOST_CLASSES,
    Reading,
    Rules,
    Shard,
    read_columns,
    read_samples,
)
from pttool.core.eval.score_columns import are_probabilities, as_scores
from pttool.core.eval.sources import FileArgument
from pttool.core.eval.types import Predictions
from pttool.errors import InputError, UsageError


def open_predictions(
    files: Sequence[FileArgument],
    *,
    true: str | None = None,
    pred: str | None = None,
    scores: str | None = None,
    classes: Path | None = None,
    num_classes: int | None = None,
    ignore_index: int | None = None,
    drop_nan: bool = False,
    pixels: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> Predictions:
    """Return the predictions in FILEs, which are shards of one run, or in two .npy files.

    `true`, `pred` and `scores` name columns; without FILES they name .npy files. The number of
    classes is `num_classes`, else that of the file `classes`, the score columns or the names;
    else None. Scores are probabilities if every row of the first block lies in 0..1 and sums to
    1, else logits. With `pixels` labels and predictions are maps, of which each pixel is a sample.

    Raises UsageError for choices that only the user can make, InputError for files that can't be
    read, UnavailableError for parquet without pyarrow. What depends on single samples is raised
    while the blocks are read: they are read once, and the files must not change meanwhile.
    """
    if num_classes is not None and not 1 <= num_classes <= MOST_CLASSES:
        raise UsageError(
            f"--num-classes {num_classes}: is not a number of classes", f"1 to {MOST_CLASSES}"
        )
    shards = _open_shards(files, true, pred, scores, pixels)
    names = read_classes(classes) if classes is not None else {}
    numbering, names, width = _look_ahead(shards, names, block_rows)
    count = _count_classes(num_classes, names, width)
    rules = Rules(numbering, count, None, ignore_index, drop_nan)
    if width is not None:
        rules = replace(rules, score_kind=_score_kind(shards, block_rows, rules))
    reading = Reading(rules)
    blocks = read_samples(shards, block_rows, reading)
    return Predictions(blocks, count, names, rules.score_kind, reading.dropped)


def _open_shards(
    files: Sequence[FileArgument],
    true: str | None,
    pred: str | None,
    scores: str | None,
    pixels: bool,
) -> list[Shard]:
    """Return the files in natural order (part2 before part10), or the one shard of .npy files."""
    if not files:
        return [_shard_of_arrays(true, pred, scores, pixels)]
    shards = []
    for file in sorted(files, key=_natural):
        table = of_pixels(open_table(file)) if pixels else open_table(file)
        shards.append(Shard(table, choose_keys(table, true, pred, scores)))
    first = shards[0]
    for shard in shards[1:]:
        for what in ("scores", "index"):
            if (getattr(first.keys, what) is None) != (getattr(shard.keys, what) is None):
                raise InputError(
                    f"{first.table.name} and {shard.table.name}: only one of them has {what}",
                    "shards of one run need the same columns",
                )
    return shards


def _natural(file: FileArgument) -> list[tuple[int, str]]:
    """Return a key that sorts the digits in a name as numbers. 0..9 only: as int() reads them."""
    parts = re.split("([0-9]+)", str(file))
    return [(int(part[:4000]), part) if part.isdecimal() else (-1, part) for part in parts]


def _shard_of_arrays(true: str | None, pred: str | None, scores: str | None, pixels: bool) -> Shard:
    if true is None or (pred is None) == (scores is None):
        raise UsageError(
            "no FILE is given", "preds.npz, or arrays: --true Y.npy --pred P.npy (or --scores)"
        )
    table = open_arrays([true, pred or scores or ""])
    table = of_pixels(table) if pixels else table
    keys = Keys(
        table.keys[0], table.keys[-1] if pred else None, table.keys[-1] if scores else None, None
    )
    check_shapes(table.name, table.shapes, keys)
    return Shard(table, keys)


def _look_ahead(
    shards: Sequence[Shard], names: dict[int, str], rows: int
) -> tuple[Numbering, dict[int, str], int | None]:
    """Return from the first block how labels are read, the names, and the score columns."""
    for shard, _, columns in read_columns(shards, rows):
        keys = shard.keys
        answers = [columns[key] for key in (keys.true, keys.pred) if key is not None]
        texts = [column for column in answers if isinstance(column, list)]
        if not names and any(as_digits(text) is None for text in texts):
            if keys.scores is not None or len(texts) < len(answers):
                raise _needs_names(shard)
            names = dict(enumerate(sorted(_vocabulary(shards, rows))))
        numbering = numbering_of(names, is_text=bool(texts) or len(shards) > 1)
        if keys.scores is None:
            return numbering, names, None
        scores = as_scores(columns[keys.scores], f"{shard.table.name}: {keys.scores}")
        return numbering, names, scores.shape[1]
    raise InputError(f"{shards[0].table.name}: holds no samples", "save at least one prediction")


def _needs_names(shard: Shard) -> InputError:
    return InputError(
        f"{shard.table.name}: some of its labels, predictions or score columns have names, "
        "others numbers",
        "say which name has which number: --classes FILE",
    )


def _vocabulary(shards: Sequence[Shard], rows: int) -> set[str]:
    """Return every name that is a label or a prediction, from a pass over all shards.

    They get their numbers in sorted order, as in torchvision's ImageFolder and scikit-learn.
    """
    bare = [Shard(s.table, replace(s.keys, index=None)) for s in shards]
    found: set[str] = set()
    for shard, row, columns in read_columns(bare, rows):
        for key, column in columns.items():
            if not isinstance(column, list):
                raise _needs_names(shard)
            if number := next(filter(WHOLE.fullmatch, set(column)), None):
                message = f"{shard.table.name}: {key} holds {number!r}, where others are names"
                raise InputError(message, "say which name has which number: --classes FILE")
            if "" in column:
                message = f"{shard.table.name}: {key} is empty in row {row + column.index('')}"
                raise InputError(f"{message} (from 0)", "fill or drop such rows")
            found.update(column)
        if len(found) > MOST_CLASSES:
            raise InputError(
                f"{shard.table.name}: holds over {MOST_CLASSES} different names",
                "are these labels? --true KEY --pred KEY choose others",
            )
    return found


def _count_classes(num_classes: int | None, names: dict[int, str], width: int | None) -> int | None:
    """Return the number of classes, if anything but the labels tells. It must not be ambiguous."""
    if num_classes is not None and width is not None and num_classes != width:
        raise UsageError(
            f"--num-classes {num_classes}: the scores have {width} columns", "leave it out"
        )
    known = width if num_classes is None else num_classes
    if names and known is not None and max(names) >= known:
        raise InputError(
            f"class {max(names)} has the name {names[max(names)]!r}, "
            f"but there are {known} classes, 0..{known - 1}",
            "check the file of --classes",
        )
    return max(names) + 1 if names and known is None else known


def _score_kind(shards: Sequence[Shard], rows: int, rules: Rules) -> str:
    """Return what the first block says that counts. A later row that differs is refused."""
    block = next(read_samples(shards, rows, Reading(rules)))
    assert block.scores is not None
    return "probabilities" if are_probabilities(block.scores).all() else "logits"
