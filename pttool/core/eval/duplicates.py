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
    there are few of them and each number is moved a few times only.
    """

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
        answers = np.stack([block.label, block.prediction], axis=1)
        if is_text:
            return self._new_texts(block.index.tolist(), answers, what)
        return self._new_numbers(block.index, answers, what)

    def _new_texts(self, index: list[str], answers: Ints, what: str) -> NDArray[np.bool_]:
        new = np.zeros(len(index), np.bool_)
        for row, (text, answer) in enumerate(zip(index, map(tuple, answers.tolist()), strict=True)):
            before = self.texts.get(text)
            if before is None:
                self.texts[text] = answer
                new[row] = True
            elif before != answer:
                _conflict(what, text, before, answer)
        return new

    def _new_numbers(self, index: Ints, answers: Ints, what: str) -> NDArray[np.bool_]:
        order = np.argsort(index, kind="stable")
        index, answers = index[order], answers[order]
        first = np.ones(len(index), np.bool_)
        np.not_equal(index[1:], index[:-1], out=first[1:])
        leader = np.maximum.accumulate(np.where(first, np.arange(len(index)), 0))
        _compare(what, index, answers[leader], answers)
        for run in self.runs:
            place = np.minimum(np.searchsorted(run.index, index), len(run.index) - 1)
            again = run.index[place] == index
            _compare(what, index[again], run.answers[place[again]], answers[again])
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


def _compare(what: str, index: Ints, before: Ints, now: Ints) -> None:
    differs = np.flatnonzero((before != now).any(axis=1))
    if len(differs):
        row = differs[0]
        _conflict(what, int(index[row]), before[row].tolist(), now[row].tolist())


def _conflict(what: str, index: Any, before: Any, now: Any) -> NoReturn:
    raise InputError(
        f"{what}: {str(index)[:200]!r} comes twice, with label {before[0]} and prediction "
        f"{before[1]}, then with {now[0]} and {now[1]}",
        "the files are of different runs, or their index counts from 0 in each: rename the column",
    )
