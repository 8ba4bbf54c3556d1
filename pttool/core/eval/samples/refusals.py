"""What is wrong with samples, counted to the end of the stream so that the error can say it all."""

from typing import Any

from numpy.typing import NDArray

from pttool.errors import InputError


class Refusals:
    """Samples that can't be evaluated. The first kind of fault that is met is the one told."""

    def __init__(self) -> None:
        self._kind: tuple[str, str] | None = None
        self._message = ""
        self._hint = ""
        self._first = 0
        self._count = 0

    def add(
        self, key: str, fault: str, rows: NDArray[Any], where: tuple[str, str], hint: str
    ) -> None:
        """Note rows with a fault in a column. `where` is (file, what the first of them holds)."""
        if not len(rows):
            return
        if self._kind is None:
            file, held = where
            self._kind = (key, fault)
            self._message = f"{file}: {key} holds {held}, {fault}"
            self._hint = hint
            self._first = int(rows[0])
        if self._kind == (key, fault):
            self._count += len(rows)

    def __bool__(self) -> bool:
        return self._kind is not None

    def raise_if_any(self) -> None:
        """Raise InputError with the first fault's value, its count and its first row."""
        if self:
            times = "once" if self._count == 1 else f"{self._count} times"
            raise InputError(
                f"{self._message}: {times}, first in row {self._first} (from 0)", self._hint
            )
