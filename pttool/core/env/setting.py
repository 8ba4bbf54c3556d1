"""One line of `pttool env`."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """A dotted name, its raw value (None is unknown or absent), and what to do about it, if any.

    `shown` is the value as people read it, where that differs.
    """

    name: str
    value: Any
    advice: str | None = None
    shown: str | None = None

    def as_item(self) -> dict[str, Any]:
        """Return the row of a report."""
        shown = _shown(self.value) if self.shown is None else self.shown
        return {"name": self.name, "value": self.value, "advice": self.advice, "shown": shown}


def _shown(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value
