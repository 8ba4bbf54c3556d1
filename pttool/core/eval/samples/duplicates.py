"""Samples that come twice, within a file or across shards, told by their index."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.types import Block, Ints
from pttool.errors import InputError


@dataclass(frozen=True, slots=True)
class _Run:
    """Indices in order, with the label and the prediction of each as the rows of `answers`."""

    index: Ints
    answers: Ints


@dataclass(slots=True)
class Seen:
    """The indices met so far: whole numbers in a few sorted runs (24 bytes each), text in a dict.

    A run is merged into the one before it unless that one is more than twice as long, so that
    there are few of them and each number is moved a few times only. Label sets (`are_sets`) are
    remembered by a fingerprint of 64 bits.
    """

    are_sets: bool = False
    runs: list[_Run] = field(default_factory=list)
    texts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def is_new(self, block: Block, what: str) -> NDArray[np.bool_]:
        """Return which samples come for the first time, and remember them.

        Raises InputError for an index that comes with another label or prediction than before,
        and for text where there were numbers or the other way round.
        """
        assert block.index is not None
        is_text = block.index.dtype.kind == "O"
        if self.runs if is_text else self.texts:
            raise InputError(
                f"{what}: indices are text in one file and numbers in another",
                "save the same kind in every shard",
            )
        answers = np.stack([self._numbers(block.label), self._numbers(block.prediction)], axis=1)
        if is_text:
            return self._new_texts(block.index.tolist(), answers, what)
        return self._new_numbers(block.index, answers, what)

    def _numbers(self, labels: NDArray[Any]) -> Ints:
        if not self.are_sets:
            return labels
        packed = np.packbits(labels, axis=1)
        return np.fromiter((hash(row.tobytes()) for row in packed), np.int64, len(packed))

    def _new_texts(self, index: list[str], answers: Ints, what: str) -> NDArray[np.bool_]:
        new = np.zeros(len(index), np.bool_)
        for row, (text, answer) in enumerate(zip(index, map(tuple, answers.tolist()), strict=True)):
            before = self.texts.get(text)
            if before is None:
                self.texts[text] = answer
                new[row] = True
            elif before != answer:
                self._conflict(what, text, before, answer)
        return new

    def _new_numbers(self, index: Ints, answers: Ints, what: str) -> NDArray[np.bool_]:
        order = np.argsort(index, kind="stable")
        index, answers = index[order], answers[order]
        first = np.ones(len(index), np.bool_)
        np.not_equal(index[1:], index[:-1], out=first[1:])
        leader = np.maximum.accumulate(np.where(first, np.arange(len(index)), 0))
        self._compare(what, index, answers[leader], answers)
        for run in self.runs:
            place = np.minimum(np.searchsorted(run.index, index), len(run.index) - 1)
            again = run.index[place] == index
            self._compare(what, index[again], run.answers[place[again]], answers[again])
            first &= ~again
        if first.any():
            self._remember(_Run(index[first], answers[first]))
        new = np.zeros(len(index), np.bool_)
        new[order] = first
        return new

    def _remember(self, run: _Run) -> None:
        while self.runs and len(self.runs[-1].index) < 2 * len(run.index):
            before = self.runs.pop()
            index = np.concatenate([before.index, run.index])
            order = np.argsort(index, kind="stable")
            run = _Run(index[order], np.concatenate([before.answers, run.answers])[order])
        self.runs.append(run)

    def _compare(self, what: str, index: Ints, before: Ints, now: Ints) -> None:
        differs = np.flatnonzero((before != now).any(axis=1))
        if len(differs):
            row = differs[0]
            self._conflict(what, int(index[row]), before[row].tolist(), now[row].tolist())

    def _conflict(self, what: str, index: Any, before: Any, now: Any) -> NoReturn:
        answers = (
            "different labels or predictions"
            if self.are_sets
            else f"label {before[0]} and prediction {before[1]}, then with {now[0]} and {now[1]}"
        )
        raise InputError(
            f"{what}: {str(index)[:200]!r} comes twice, with {answers}",
            "the files are of different runs, or their index counts from 0 in each: "
            "rename the column",
        )
