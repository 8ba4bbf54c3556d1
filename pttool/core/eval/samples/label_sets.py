"""Several labels per sample: from columns of 0 and 1, and of scores, to sets of labels."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.reading.tables import Column, Columns
from pttool.core.eval.samples.numbering import Place
from pttool.core.eval.samples.one_label import (
    Part,
    Reading,
    Rules,
    Shard,
    check_width,
    distinct,
    finite,
    index_of,
    refuse,
)
from pttool.core.eval.samples.refusals import Refusals
from pttool.core.eval.samples.score_columns import are_in_unit_interval, as_scores
from pttool.core.eval.types import Block, Flags

THRESHOLD = 0.5
LABEL_HINT = "save 0 or 1 per class and sample (class numbers aren't read)"


def set_samples(shard: Shard, row: int, columns: Columns, reading: Reading) -> Part:
    """Return the samples that count; see `read_samples`."""
    part = finite(distinct(_part(shard, row, columns, reading), reading), reading)
    return _of_one_kind(part, reading)


def as_sets(column: Column, place: Place, refusals: Refusals, hint: str = LABEL_HINT) -> Flags:
    """Return a column of 0 and 1 as bool; anything else becomes False and is noted."""
    assert not isinstance(column, list)  # text has one dimension, which was refused
    if column.dtype == np.bool_:
        return column
    ones = np.asarray(column == 1)
    bad = ~(ones | (column == 0))
    if bad.any():
        rows, classes = np.nonzero(bad)
        held = str(column[rows[0], classes[0]])
        where = (place.file, held)
        refusals.add(place.key, "neither 0 nor 1", rows + place.row, where, hint)
    return ones


def predicted(scores: NDArray[Any], kind: str | None, threshold: float) -> Flags:
    """Return which classes have a probability of at least `threshold`; that of logits is sigmoid's.

    Compared are the logits, so that 0.5 is exactly 0.
    """
    return np.asarray(scores >= (_logit(threshold) if kind == "logits" else threshold))


def _logit(probability: float) -> float:
    if probability in (0.0, 1.0):
        return math.inf if probability else -math.inf
    return math.log(probability / (1 - probability))


def _part(shard: Shard, row: int, columns: Columns, reading: Reading) -> Part:
    keys, name, rules = shard.keys, shard.table.name, reading.rules

    def sets(key: str, hint: str = LABEL_HINT) -> Flags:
        check_width(shard, key, columns[key], rules.num_classes)
        return as_sets(columns[key], Place(name, key, row), reading.refusals, hint)

    label, scores = sets(keys.true), None
    if keys.scores is not None:
        scores = as_scores(columns[keys.scores], f"{name}: {keys.scores}")
    if keys.pred is None:
        prediction = _from_scores(scores, rules)
    else:
        prediction = sets(keys.pred, f"if these are scores: --scores {keys.pred}")
    index = index_of(shard, row, columns, reading)
    block = Block(label, prediction, scores, index, _differs(shard, columns, scores, rules))
    return Part(shard, np.arange(row, row + len(label)), block)


def _differs(
    shard: Shard, columns: Columns, scores: NDArray[Any] | None, rules: Rules
) -> Flags | None:
    """Return where a saved prediction isn't what the scores say."""
    key = shard.keys.pred or shard.keys.beside
    if key is None or scores is None or rules.score_kind is None:
        return None
    column = columns[key]
    if isinstance(column, list) or column.shape != scores.shape:
        return None
    unread = Refusals()
    saved = as_sets(column, Place(shard.table.name, key, 0), unread)
    threshold = THRESHOLD if rules.threshold is None else rules.threshold
    if unread:
        return None
    return np.asarray((saved != predicted(scores, rules.score_kind, threshold)).any(axis=1))


def _from_scores(scores: NDArray[Any] | None, rules: Rules) -> Flags:
    assert scores is not None
    assert rules.threshold is not None
    return predicted(scores, rules.score_kind, rules.threshold)


def _of_one_kind(part: Part, reading: Reading) -> Part:
    """Refuse rows beyond 0..1 where the first were probabilities: these are two kinds of scores."""
    scores = part.block.scores
    if scores is not None and reading.rules.score_kind == "probabilities" and len(scores):
        bad = np.flatnonzero(~are_in_unit_interval(scores))
        if len(bad):
            first = scores[bad[0]]
            held = f"scores {first.min():g} to {first.max():g}"
            what = (part.shard.keys.scores or "", held, "where the first rows are probabilities")
            refuse(part, bad, what, "save all as logits or all as probabilities", reading)
    return part
