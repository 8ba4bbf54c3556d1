"""From columns to samples: class numbers, and what is left out or refused on the way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.reading.keys import Keys, check_shapes
from pttool.core.eval.reading.tables import Column, Columns, Table
from pttool.core.eval.samples.duplicates import Seen
from pttool.core.eval.samples.numbering import Numbering, Place, whole_numbers
from pttool.core.eval.samples.refusals import Refusals
from pttool.core.eval.samples.score_columns import are_finite, are_probabilities, argmax, as_scores
from pttool.core.eval.types import Beside, Block, Dropped, Flags, Ints
from pttool.errors import InputError

BLOCK_ROWS = 1 << 18
# Where nothing says how many classes there are the largest label does; a wild one must not.
MOST_CLASSES = 1 << 24


@dataclass(frozen=True, slots=True)
class Shard:
    """One file's table, and which of its columns are read."""

    table: Table
    keys: Keys


@dataclass(frozen=True, slots=True)
class Rules:
    """How columns become samples, and which samples are left out.

    `threshold` is the probability from which a class is predicted, of several per sample. `names`
    is how many names there are, where they alone say how many classes.
    """

    numbering: Numbering
    num_classes: int | None
    score_kind: str | None = None
    ignore_index: int | None = None
    drop_nan: bool = False
    threshold: float | None = None
    names: int | None = None


@dataclass(slots=True)
class Reading:
    """One pass over the shards: its rules, and what it met so far."""

    rules: Rules
    dropped: Dropped = field(default_factory=Dropped)
    refusals: Refusals = field(default_factory=Refusals)
    seen: Seen = field(default_factory=Seen)
    beside: Beside | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Samples on their way, with the file and the rows that they come from."""

    shard: Shard
    rows: Ints
    block: Block

    def only(self, kept: NDArray[np.bool_]) -> "Part":
        """Return the samples that are kept."""
        if kept.all():
            return self
        block = self.block
        return replace(
            self,
            rows=self.rows[kept],
            block=Block(
                block.label[kept],
                block.prediction[kept],
                None if block.scores is None else block.scores[kept],
                None if block.index is None else block.index[kept],
                None if block.differs is None else block.differs[kept],
            ),
        )


# From one block of columns, which begins at a row of a shard, to the samples that count.
Prepare = Callable[[Shard, int, Columns, Reading], Part]


def read_columns(shards: Sequence[Shard], rows: int) -> Iterator[tuple[Shard, int, Columns]]:
    """Yield (shard, its row, columns) of blocks that have rows, and at most so many.

    Raises InputError for columns of different lengths.
    """
    for shard in shards:
        row = 0
        for columns in shard.table.read(shard.keys.wanted(), rows):
            shapes = {
                key: (len(column),) if isinstance(column, list) else column.shape
                for key, column in columns.items()
            }
            check_shapes(shard.table.name, shapes, shard.keys)
            if shapes[shard.keys.true][0]:
                yield shard, row, columns
            row += shapes[shard.keys.true][0]


def read_samples(
    shards: Sequence[Shard], rows: int, reading: Reading, prepare: Prepare
) -> Iterator[Block]:
    """Yield the samples that count.

    Left out, in this order: duplicates of an index, labels to be ignored, scores that aren't
    finite if that is allowed. Once a sample is refused nothing more is yielded, only counted, and
    the InputError comes at the end of the stream.
    """
    count = 0
    for shard, row, columns in read_columns(shards, rows):
        part = prepare(shard, row, columns, reading)
        if len(part.rows) and not reading.refusals:
            count += len(part.rows)
            _compare(part.block, reading.beside)
            yield part.block
    reading.refusals.raise_if_any()
    if not count:
        raise _nothing_left(shards, reading.dropped)


def _compare(block: Block, beside: Beside | None) -> None:
    if beside is not None and block.differs is not None:
        beside.n += len(block.differs)
        beside.differing += int(block.differs.sum())


def class_samples(shard: Shard, row: int, columns: Columns, reading: Reading) -> Part:
    """Return the samples that count, of one class each."""
    part = distinct(_part(shard, row, columns, reading), reading)
    part = finite(_not_ignored(part, reading), reading)
    return _in_range(_of_one_kind(part, reading), reading)


def _part(shard: Shard, row: int, columns: Columns, reading: Reading) -> Part:
    keys, name = shard.keys, shard.table.name

    def numbers(key: str) -> Ints:
        place = Place(name, key, row)
        return reading.rules.numbering.numbers(columns[key], place, reading.refusals)

    label, scores = numbers(keys.true), None
    if keys.scores is not None:
        scores = as_scores(columns[keys.scores], f"{name}: {keys.scores}")
        check_width(shard, keys.scores, scores, reading.rules.num_classes)
    prediction = argmax(scores) if scores is not None else numbers(keys.pred or "")
    index = index_of(shard, row, columns, reading)
    rows = np.arange(row, row + len(label))
    differs = _differs(shard, columns, prediction, reading)
    return Part(shard, rows, Block(label, prediction, scores, index, differs))


def _differs(shard: Shard, columns: Columns, prediction: Ints, reading: Reading) -> Flags | None:
    """Return where a prediction beside the scores is another; what is no class number is none."""
    key = shard.keys.beside
    if key is None:
        return None
    unread = Refusals()
    place = Place(shard.table.name, key, 0)
    saved = reading.rules.numbering.numbers(columns[key], place, unread)
    return None if unread or len(saved) != len(prediction) else np.asarray(saved != prediction)


def check_width(shard: Shard, key: str, column: Column, num_classes: int | None) -> None:
    """Raise InputError for a wide column of another number of classes than those before it."""
    width = 1 if isinstance(column, list) else column.shape[1]
    if num_classes is not None and width != num_classes:
        raise InputError(
            f"{shard.table.name}: {key} has {width} columns, "
            f"where {num_classes} classes are expected",
            "shards need the same classes",
        )


def index_of(shard: Shard, row: int, columns: Columns, reading: Reading) -> NDArray[Any] | None:
    """Return the index of a block's samples: whole numbers or text. None where there is none."""
    key = shard.keys.index
    if key is None:
        return None
    column = columns[key]
    if isinstance(column, list):
        return np.array(column, dtype=object)
    return whole_numbers(column, Place(shard.table.name, key, row), reading.refusals)


def distinct(part: Part, reading: Reading) -> Part:
    """Leave out samples whose index came before."""
    if part.block.index is None or reading.refusals:
        return part
    new = reading.seen.is_new(part.block, f"{part.shard.table.name}: {part.shard.keys.index}")
    reading.dropped.duplicates += int(len(new) - new.sum())
    return part.only(new)


def _not_ignored(part: Part, reading: Reading) -> Part:
    if reading.rules.ignore_index is None:
        return part
    kept = part.block.label != reading.rules.ignore_index
    reading.dropped.ignored += int(len(kept) - kept.sum())
    return part.only(kept)


def finite(part: Part, reading: Reading) -> Part:
    """Leave out samples with scores that aren't finite, or refuse them."""
    if part.block.scores is None:
        return part
    kept = are_finite(part.block.scores)
    if kept.all():
        return part
    if reading.rules.drop_nan:
        reading.dropped.not_finite += int(len(kept) - kept.sum())
    else:
        bad = np.flatnonzero(~kept)
        row = part.block.scores[bad[0]]
        held = str(row[~np.isfinite(row)][0])
        hint = "find out where it comes from, or leave such samples out: --nan drop"
        refuse(part, bad, (part.shard.keys.scores or "", held, "no finite score"), hint, reading)
    return part.only(kept)


def _of_one_kind(part: Part, reading: Reading) -> Part:
    """Refuse rows that are no probabilities where the first were: these are two kinds of scores."""
    scores = part.block.scores
    if scores is not None and reading.rules.score_kind == "probabilities" and len(scores):
        bad = np.flatnonzero(~are_probabilities(scores))
        if len(bad):
            row = scores[bad[0]].astype(np.float64)
            with np.errstate(over="ignore"):
                held = f"scores {row.min():g} to {row.max():g} with sum {row.sum():g}"
            what = (part.shard.keys.scores or "", held, "where the first rows are probabilities")
            refuse(part, bad, what, "save all as logits or all as probabilities", reading)
    return part


def _in_range(part: Part, reading: Reading) -> Part:
    known = reading.rules.num_classes
    limit = MOST_CLASSES if known is None else known
    hint = "does it count from 1, or is one to be left out: --ignore-index N?"
    if reading.rules.names is not None:
        hint = "name every class, or say how many there are: --num-classes N"
    if known is None:
        hint = "class numbers count from 0; leave a padding label out with --ignore-index N"
    keys, block = part.shard.keys, part.block
    pairs = [(keys.true, block.label), (keys.pred, block.prediction)]
    for key, numbers in pairs:
        if key is None or not len(numbers) or (numbers.min() >= 0 and numbers.max() < limit):
            continue
        bad = np.flatnonzero((numbers < 0) | (numbers >= limit))
        fault = f"outside 0..{limit - 1}"
        if reading.rules.names is not None:
            named = f"{reading.rules.names} name{'s' if reading.rules.names > 1 else ''}"
            fault += f": --classes has {named}, up to class {limit - 1}"
        refuse(part, bad, (key, str(numbers[bad[0]]), fault), hint, reading)
    return part


def refuse(part: Part, bad: Ints, what: tuple[str, str, str], hint: str, reading: Reading) -> None:
    """Note samples of a part; `what` is (key, what the first of them holds, the fault)."""
    key, held, fault = what
    place = (part.shard.table.name, held)
    reading.refusals.add(key, fault, part.rows[bad], place, hint)


def _nothing_left(shards: Sequence[Shard], dropped: Dropped) -> InputError:
    names = ", ".join(shard.table.name for shard in shards[:3]) + (", ..." if shards[3:] else "")
    if not (dropped.ignored or dropped.not_finite):
        return InputError(f"{names}: holds no samples", "save at least one prediction")
    return InputError(
        f"{names}: no samples are left: {dropped.ignored} have the label to be ignored, "
        f"{dropped.not_finite} a score that isn't finite",
        "check --ignore-index and --nan",
    )
