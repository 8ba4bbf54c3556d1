"""Saved predictions of any format, as one stream of samples with class numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.classes.names import read_classes
from pttool.core.eval.reading.keys import Keys, check_shapes, choose_keys, choose_set_keys
from pttool.core.eval.reading.recognition import open_arrays, open_table
from pttool.core.eval.reading.sources import FileArgument
from pttool.core.eval.reading.tables import Table
from pttool.core.eval.samples.duplicates import Seen
from pttool.core.eval.samples.label_sets import THRESHOLD, set_samples
from pttool.core.eval.samples.numbering import WHOLE, Numbering, as_digits, numbering_of
from pttool.core.eval.samples.one_label import (
    BLOCK_ROWS,
    MOST_CLASSES,
    Reading,
    Rules,
    Shard,
    class_samples,
    read_columns,
    read_samples,
)
from pttool.core.eval.samples.pixels import of_pixels
from pttool.core.eval.samples.score_columns import (
    are_in_unit_interval,
    are_probabilities,
    as_scores,
)
from pttool.core.eval.types import Beside, Predictions, Task
from pttool.core.natural_order import natural
from pttool.errors import InputError, UsageError


def open_predictions(
    files: Sequence[FileArgument],
    *,
    true: str | None = None,
    pred: str | None = None,
    scores: str | None = None,
    classes: Path | dict[int, str] | None = None,
    num_classes: int | None = None,
    ignore_index: int | None = None,
    drop_nan: bool = False,
    task: Task = "classes",
    threshold: float | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Predictions:
    """Return the predictions in FILEs, which are shards of one run, or in two .npy files.

    `true`, `pred` and `scores` name columns; without FILES they name .npy files. The names are
    those of the file `classes`, or as `read_classes` returns them. The number of classes is
    `num_classes`, else that of `classes`, the score columns or the names; else None. Scores are
    probabilities if every row of the first block lies in 0..1 and sums to 1, else logits.

    Of the task "pixels" labels and predictions are maps, of which each pixel is a sample. Of
    "multilabel" they are (N, C) of 0 and 1; without a prediction, or with a `threshold`, a class is
    predicted from that probability (0.5) up, and scores in 0..1 are probabilities, others logits.

    Raises UsageError for choices that only the user can make, InputError for files that can't be
    read, UnavailableError for parquet without pyarrow. What depends on single samples is raised
    while the blocks are read: they are read once, and the files must not change meanwhile.
    """
    if num_classes is not None and not 1 <= num_classes <= MOST_CLASSES:
        raise UsageError(
            f"--num-classes {num_classes}: is not a number of classes", f"1 to {MOST_CLASSES}"
        )
    _check_threshold(threshold, task, pred)
    if task == "pixels" and scores is not None:
        hint = "save the class of each pixel, and name that: --pred KEY"
        raise UsageError("--scores: of pixels only classes are read", hint)
    if not files:
        shards = [_shard_of_arrays(true, pred, scores, task)]
    else:
        choose = partial(choose_keys, true=true, pred=pred, scores=scores)
        if task == "multilabel":
            choose = partial(
                choose_set_keys,
                true=true,
                pred=pred,
                scores=scores,
                by_threshold=threshold is not None,
            )
        shards = _open_shards(files, task, (true, pred), choose)
    names = read_classes(classes) if isinstance(classes, Path) else classes or {}
    if task == "multilabel":
        if ignore_index is not None:
            raise UsageError("--ignore-index: needs one class per sample", "leave it out")
        rules = Rules(numbering_of({}, is_text=False), None, drop_nan=drop_nan, threshold=threshold)
        return _label_sets(shards, names, num_classes, block_rows, rules)
    numbering, names, width = _look_ahead(shards, names, block_rows)
    count = _count_classes(num_classes, names, width)
    by_names = len(names) if names and num_classes is None and width is None else None
    rules = Rules(numbering, count, None, ignore_index, drop_nan, names=by_names)
    if width is not None:
        block = next(read_samples(shards, block_rows, Reading(rules), class_samples))
        rules = replace(rules, score_kind=_score_kind(block.scores, are_probabilities))
    reading = Reading(rules, beside=_beside(shards))
    blocks = read_samples(shards, block_rows, reading, class_samples)
    return Predictions(
        blocks, count, names, rules.score_kind, reading.dropped, beside=reading.beside
    )


def _beside(shards: Sequence[Shard], *, by_threshold: bool = False) -> Beside | None:
    """Return the counter of a prediction saved beside scores: which of the two predicts."""
    keys = next((shard.keys for shard in shards if shard.keys.beside), shards[0].keys)
    if keys.scores is None:
        return None
    if keys.beside is not None:
        is_asked = keys.are_sets and by_threshold
        option = "leave out --threshold" if is_asked else f"--pred {keys.beside}"
        return Beside(keys.scores, keys.beside, option)
    option = f"--threshold {THRESHOLD}"
    return None if keys.pred is None else Beside(keys.pred, keys.scores, option)


def _label_sets(
    shards: Sequence[Shard],
    names: dict[int, str],
    num_classes: int | None,
    rows: int,
    rules: Rules,
) -> Predictions:
    """Return predictions of several labels per sample; the first block says how many classes."""
    keys = shards[0].keys
    beside = _beside(shards, by_threshold=rules.threshold is not None)
    if keys.pred is None and rules.threshold is None:
        rules = replace(rules, threshold=THRESHOLD)
    block = next(read_samples(shards, rows, _reading_sets(rules), set_samples))
    count = _count_classes(num_classes, names, block.label.shape[1])
    rules = replace(rules, num_classes=count)
    if block.scores is not None:
        rules = replace(rules, score_kind=_score_kind(block.scores, are_in_unit_interval))
    reading = replace(_reading_sets(rules), beside=beside)
    blocks = read_samples(shards, rows, reading, set_samples)
    return Predictions(
        blocks, count, names, rules.score_kind, reading.dropped,
        is_multilabel=True, threshold=rules.threshold, beside=reading.beside,
    )  # fmt: skip


def _reading_sets(rules: Rules) -> Reading:
    return Reading(rules, seen=Seen(are_sets=True))


def _check_threshold(threshold: float | None, task: Task, pred: str | None) -> None:
    if threshold is None:
        return
    if not 0 <= threshold <= 1:
        raise UsageError(f"--threshold {threshold}: is no probability", "0 to 1, as 0.5")
    if task != "multilabel":
        message = "--threshold: is of several labels per sample; else the largest score predicts"
        raise UsageError(message, "add --task multilabel, or leave it out")
    if pred is not None:
        hint = "a prediction needs no threshold: give one of the two"
        raise UsageError("both --pred and --threshold are given", hint)


def _open_shards(
    files: Sequence[FileArgument],
    task: Task,
    named: Sequence[str | None],
    choose: Callable[[Table], Keys],
) -> list[Shard]:
    """Return the files in natural order (part2 before part10)."""
    shards = []
    for file in sorted(files, key=lambda file: natural(str(file))):
        table = open_table(file)
        table = of_pixels(table, named) if task == "pixels" else table
        shards.append(Shard(table, choose(table)))
    first = shards[0]
    for shard in shards[1:]:
        for what in ("scores", "pred", "index"):
            if (getattr(first.keys, what) is None) != (getattr(shard.keys, what) is None):
                raise InputError(
                    f"{first.table.name} and {shard.table.name}: only one of them has {what}",
                    "shards of one run need the same columns",
                )
    return shards


def _shard_of_arrays(true: str | None, pred: str | None, scores: str | None, task: Task) -> Shard:
    are_sets = task == "multilabel"
    answers = [file for file in (pred, scores) if file is not None]
    if true is None or not answers or (len(answers) > 1 and not are_sets):
        raise UsageError(
            "no FILE is given", "preds.npz, or arrays: --true Y.npy --pred P.npy (or --scores)"
        )
    table, (label, *rest) = open_arrays([true, *answers])
    table = of_pixels(table, (label, *rest)) if task == "pixels" else table
    keys = Keys(label, rest[0] if pred else None, rest[-1] if scores else None, None, are_sets)
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
        # An empty cell is no name: that of a number is refused with its row when it is read.
        filled = [[cell for cell in text if cell] for text in texts]
        if not names and any(as_digits(text) is None for text in filled):
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
            f"--num-classes {num_classes}: labels or scores have {width} columns", "leave it out"
        )
    known = width if num_classes is None else num_classes
    if names and known is not None and max(names) >= known:
        raise InputError(
            f"class {max(names)} has the name {names[max(names)]!r}, "
            f"but there are {known} classes, 0..{known - 1}",
            "check the file of --classes",
        )
    return max(names) + 1 if names and known is None else known


def _score_kind(
    scores: NDArray[Any] | None, are_fit: Callable[[NDArray[Any]], NDArray[np.bool_]]
) -> str:
    """Return what the first block says that counts. A later row that differs is refused."""
    assert scores is not None
    return "probabilities" if are_fit(scores).all() else "logits"
