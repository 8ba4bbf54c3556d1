"""Read one value of SPEC: lengths in epochs or steps, numbers, flags and choices."""

import re
from dataclasses import dataclass
from math import isfinite

from pttool.core.lr.words import Parameter

_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(s?)")
LONGEST = 1e9
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Length:
    """A number of epochs, or of steps."""

    count: float
    in_steps: bool = False

    def __str__(self) -> str:
        """Return it as SPEC has it."""
        return f"{self.count:g}{'s' * self.in_steps}"


Read = float | int | bool | str | Length | tuple[Length, ...]


def read(text: str, parameter: Parameter) -> Read:
    """Return the value of a parameter. Raises ValueError, with the reason, for one it can't be."""
    match parameter.kind:
        case "length":
            return _length(text)
        case "lengths":
            return (_length(text),)
        case "flag":
            if text.lower() not in FLAGS:
                raise ValueError(f"{text!r} is neither true nor false")
            return FLAGS[text.lower()]
        case "choice":
            if text not in parameter.choices:
                raise ValueError(f"{text!r} is none of {', '.join(parameter.choices)}")
            return text
    return _number(text, parameter)


def _length(text: str) -> Length:
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number of epochs, nor of steps as 500s is")
    count = float(found[1])
    if not 0 < count <= LONGEST:
        raise ValueError(f"{text!r} is not above 0" if count == 0 else f"{text!r} is too long")
    return Length(count, bool(found[2]))


def _number(text: str, parameter: Parameter) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    low, high = parameter.low, parameter.high
    if not isfinite(value):
        raise ValueError(f"{text!r} is not finite")
    if low is not None and (value < low or (parameter.above_low and value == low)):
        raise ValueError(f"{text!r} is not {'above' if parameter.above_low else 'at least'} {low}")
    if high is not None and value > high:
        raise ValueError(f"{text!r} is above {high}")
    if parameter.kind == "whole":
        if value != int(value):
            raise ValueError(f"{text!r} is no whole number")
        return int(value)
    return value
