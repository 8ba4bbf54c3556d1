"""Read SPEC, the one-line language of learning rates, without torch.

SPEC  = PHASE + PHASE ...       one after the other (torch's SequentialLR)
PHASE = TERM * TERM ...         at once, each a factor (torch's ChainedScheduler)
TERM  = WORD or WORD(VALUE, ..., NAME=VALUE, ...)
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from pttool.core.lr.values import Length, Read, read
from pttool.core.lr.words import ALIASES, REFUSED, REFUSED_ALIASES, WORDS, Parameter, Word
from pttool.errors import UsageError

FOR = Parameter("for", "for", "length")
_TOKEN = re.compile(r"[^\s()+*,=]+")
_VALUE = re.compile(r"[^\s(),=]+")


@dataclass(frozen=True, slots=True)
class Term:
    """One scheduler: its word, the arguments given by torch's names, and where it stands."""

    word: Word
    given: dict[str, Read]
    at: int
    lasting: Length | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """The phases of a text, each of one term or of several that are multiplied."""

    text: str
    phases: tuple[tuple[Term, ...], ...]

    def fault(self, what: str, at: int, hint: str) -> UsageError:
        """Return what is wrong at a place of the text as an error."""
        return UsageError(f"SPEC {self.text!r}: {what} (character {at + 1})", hint)


def parse(text: str) -> Spec:
    """Return the phases that a text describes.

    Raises UsageError, naming the wrong word, for anything that is not of the language, and for
    combinations that torch's schedulers can't make.
    """
    reader = _Reader(text)
    phases = [reader.phase()]
    while reader.take("+"):
        phases.append(reader.phase())
    if reader.rest():
        raise reader.fault(f"{reader.rest()!r} can't follow here", reader.at, "join phases with +")
    spec = Spec(text, tuple(phases))
    _check_combination(spec)
    return spec


class _Reader:
    """A place in the text, which moves on as things are read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def rest(self) -> str:
        """Return what is still to be read, and move to it."""
        self.at = len(self.text) - len(self.text[self.at :].lstrip())
        return self.text[self.at :].rstrip()

    def fault(self, what: str, at: int, hint: str) -> UsageError:
        return Spec(self.text, ()).fault(what, at, hint)

    def take(self, mark: str) -> bool:
        """Move behind a mark, if it comes next."""
        found = self.rest().startswith(mark)
        self.at += found
        return found

    def token(self, pattern: re.Pattern[str]) -> str:
        """Move behind the next token, and return it; an empty one if there is none."""
        self.rest()
        found = pattern.match(self.text, self.at)
        self.at += len(found[0]) if found else 0
        return found[0] if found else ""

    def phase(self) -> tuple[Term, ...]:
        terms = [self.term()]
        while self.take("*"):
            terms.append(self.term())
        return tuple(terms)

    def term(self) -> Term:
        name = self.token(_TOKEN)
        at = self.at - len(name)
        word = self.word(name, at)
        given: dict[str, Read] = {}
        if self.take("("):
            while not self.take(")"):
                self.argument(word, given)
                if not self.take(",") and not self.rest().startswith(")"):
                    found = self.rest()[:1]
                    what = f"{found!r} where , or ) is due" if found else "a ) is missing"
                    raise self.fault(what, self.at, f"as in {word.example}")
        for parameter in word.parameters:
            if parameter.required and parameter.key not in given:
                what = f"{name!r} needs {parameter.name}"
                raise self.fault(what, at, f"as in {word.example}")
        lasting = given.pop(FOR.key, None)
        return Term(word, given, at, lasting if isinstance(lasting, Length) else None)

    def word(self, name: str, at: int) -> Word:
        lowered = name.lower()
        if lowered in WORDS:
            return WORDS[lowered]
        refused = REFUSED_ALIASES.get(lowered, lowered)
        if refused in REFUSED:
            why, instead = REFUSED[refused]
            raise self.fault(f"{name!r} {why}", at, instead)
        if not name:
            raise self.fault("a scheduler's name is missing", at, f"one of {', '.join(WORDS)}")
        known = ALIASES.get(lowered)
        meant = [known] if known else nearest(lowered, WORDS)
        raise self.fault(f"there is no scheduler {name!r}", at, _did_you_mean(meant, WORDS))

    def argument(self, word: Word, given: dict[str, Read]) -> None:
        text = self.token(_VALUE)
        at = self.at - len(text)
        if self.take("="):
            parameter = FOR if text == FOR.key else word.find(text)
            if parameter is None:
                names = [each.name for each in (*word.parameters, FOR)]
                hint = _did_you_mean(nearest(text, names), names)
                raise self.fault(f"{word.name!r} has no {text!r}", at, hint)
            text = self.token(_VALUE)
            at = self.at - len(text)
        else:
            parameter = self.by_place(word, given, text, at)
        if parameter.key in given and parameter.kind != "lengths":
            raise self.fault(f"{parameter.name} is given twice", at, f"as in {word.example}")
        try:
            value = read(text, parameter)
        except ValueError as error:
            what = f"{word.name}'s {parameter.name}: {error}"
            raise self.fault(what, at, f"as in {word.example}") from error
        earlier = given.get(parameter.key, ())
        if isinstance(value, tuple) and isinstance(earlier, tuple):
            value = (*earlier, *value)
        given[parameter.key] = value

    def by_place(self, word: Word, given: dict[str, Read], text: str, at: int) -> Parameter:
        """Return the parameter of a value without a name: the first, if it is a length or rate."""
        first = word.parameters[0]
        if not first.can_be_first or (first.key in given and first.kind != "lengths"):
            names = ", ".join(f"{each.name}=" for each in word.parameters)
            what = f"{text!r} needs a name" if text else "a value is missing"
            raise self.fault(what, at, f"one of {names}")
        return first


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that may have been meant."""
    return get_close_matches(name, list(known), 2, 0.6)


def _did_you_mean(meant: list[str], known: Iterable[str]) -> str:
    if meant:
        return f"Did you mean {' or '.join(map(repr, meant))}?"
    return f"one of {', '.join(known)}"


def _check_combination(spec: Spec) -> None:
    for place, phase in enumerate(spec.phases):
        for term in phase:
            name = term.word.name
            if len(phase) > 1 and term.word.absolute:
                what = f"{name!r} sets the lr itself, so that nothing can be multiplied with it"
                raise spec.fault(what, term.at, "multiply step, multistep, exp, poly or cosine")
            if len(spec.phases) > 1 and term.word.alone:
                what = f"{name!r} is a whole schedule: it changes the lr that all phases start from"
                raise spec.fault(what, term.at, "give it alone; it has a warm-up of its own")
            if len(spec.phases) > 1 and term.word.torch == "CyclicLR" and place == 0:
                what = f"{name!r} can't come first: it changes the lr that all phases start from"
                raise spec.fault(what, term.at, "put it after a +, or give it alone")
        if len(phase) > 1 and len(spec.phases) > 1:
            what = "torch's SequentialLR (+) can't run a ChainedScheduler (*)"
            raise spec.fault(what, phase[0].at, "give a product alone, or a chain without *")
