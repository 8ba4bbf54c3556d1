"""From what is stored as a label to a class number: integers, integral floats, text, names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.reading.tables import Column
from pttool.core.eval.samples.refusals import Refusals
from pttool.core.eval.types import Ints

LARGEST_EXACT = 2**53  # above it a float stands for several integers
NOT_WHOLE = "which is no class number"
LONGEST_SHOWN = 60
WHOLE = re.compile(r"\s*[+-]?[0-9]{1,300}(\.0*)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column's block comes from: for messages."""

    file: str
    key: str
    row: int


@dataclass(frozen=True, slots=True)
class Numbering:
    """How text becomes class numbers: first by its name, then by the number that it is.

    `ambiguous` are names that look like the number of another class, `shared` those of several.
    """

    by_name: Mapping[str, int]
    ambiguous: frozenset[str]
    shared: frozenset[str] = frozenset()

    def numbers(self, column: Column, place: Place, refusals: Refusals) -> Ints:
        """Return the class numbers of a column; what has none becomes 0 and is noted."""
        if not isinstance(column, list):
            return whole_numbers(column, place, refusals)
        if self.ambiguous and not self.ambiguous.isdisjoint(column):
            rows = [row for row, text in enumerate(column) if text in self.ambiguous]
            text = column[rows[0]]
            held = f"{text!r}, the name of class {self.by_name[text]}"
            hint = "save class numbers as integers (npz, jsonl), or rename the classes"
            fault = "which looks like the number of another"
            refusals.add(place.key, fault, np.array(rows) + place.row, (place.file, held), hint)
        if self.by_name.keys().isdisjoint(column):
            digits = as_digits(column)
            if digits is not None:
                return whole_numbers(digits, place, refusals, column)
        return self._by_name(column, place, refusals)

    def _by_name(self, texts: list[str], place: Place, refusals: Refusals) -> Ints:
        numbers = np.zeros(len(texts), np.int64)
        unknown = []
        for row, text in enumerate(texts):
            number = self.by_name.get(text)
            digits = as_digits([text]) if number is None else None
            if digits is not None:
                numbers[row] = whole_numbers(digits, replace(place, row=place.row + row), refusals)[
                    0
                ]
            elif number is None or text in self.shared:
                unknown.append(row)
            else:
                numbers[row] = number
        if unknown:
            fault, hint = self._unknown(texts[unknown[0]])
            held = (place.file, _shown(texts[unknown[0]]))
            refusals.add(place.key, fault, np.array(unknown) + place.row, held, hint)
        return numbers

    def _unknown(self, text: str) -> tuple[str, str]:
        if not text:
            return "which is empty", "fill or drop such rows"
        if text in self.shared:
            return "which names several classes", "save class numbers, or rename the classes"
        if not self.by_name:
            return "where the file begins with numbers", "if these are names: --classes FILE"
        nearest = get_close_matches(text[:200], self.by_name, 3)
        hint = (
            f"nearest: {', '.join(map(repr, nearest))}"
            if nearest
            else "check the file of --classes"
        )
        return "which names no class", hint


def numbering_of(names: Mapping[int, str], *, is_text: bool) -> Numbering:
    """Return how text is read, if labels are text."""
    by_name: dict[str, int] = {}
    shared = set()
    for number, name in sorted(names.items()) if is_text else ():
        if name in by_name:
            shared.add(name)
        by_name.setdefault(name, number)
    ambiguous = {name for name, number in by_name.items() if WHOLE.fullmatch(name)}
    ambiguous -= {name for name in ambiguous - shared if float(name) == by_name[name]}
    return Numbering(by_name, frozenset(ambiguous), frozenset(shared))


def whole_numbers(
    array: NDArray[Any], place: Place, refusals: Refusals, texts: list[str] | None = None
) -> Ints:
    """Return integers, bool or integral floats as int64; anything else becomes 0 and is noted.

    `texts` are what the numbers were read from: too large a one is shown as it was.
    """
    flat = array.reshape(-1)
    if flat.dtype.kind == "f":
        flat = flat.astype(np.float64, copy=False)
        whole = np.isfinite(flat)
        finite = np.where(whole, flat, 0)
        whole &= (np.abs(finite) <= LARGEST_EXACT) & (finite == np.floor(finite))
        hint = "save class numbers: array.astype(int)"
        _refuse(flat, ~whole, place, refusals, hint, texts)
        return np.where(whole, flat, 0).astype(np.int64)
    if flat.dtype == np.uint64:
        large = flat > np.uint64(2**63 - 1)
        _refuse(flat, large, place, refusals, "save class numbers from 0")
        flat = np.where(large, np.uint64(0), flat)
    return flat.astype(np.int64, copy=False)


def _refuse(
    flat: NDArray[Any],
    bad: NDArray[np.bool_],
    place: Place,
    refusals: Refusals,
    hint: str,
    texts: list[str] | None = None,
) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        held = str(flat[rows[0]])
        if held == "inf" and texts is not None:
            held = _shown(texts[rows[0]])
        refusals.add(place.key, NOT_WHOLE, rows + place.row, (place.file, held), hint)


def as_digits(texts: list[str]) -> NDArray[Any] | None:
    """Return text that is numbers as an array, or None where some isn't.

    A number is what int and float read, in ASCII and without underscores: 0_1 is a name.
    """
    together = "".join(texts)
    if not together.isascii() or "_" in together:
        return None
    try:
        return np.array(list(map(int, texts)), dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array(list(map(float, texts)))
    except ValueError:
        return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "...")
