"""Walk pickles wherever they are, whole or broken, and judge what each would import and call."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.pickles.nodes import Global, Node, Span
from pttool.core.ckpt.pickles.walker import Buffer, Walker
from pttool.core.ckpt.safety.allowed import in_python_3, is_allowed
from pttool.core.ckpt.safety.dangerous import danger

PROTO = b"\x80"
LOADS_BYTES = "torch.storage._load_from_bytes"
# Opcodes that don't say what they make, or make it in a way that only Python 2 wrote.
OBSCURE = {b"\x82\x83\x84": "EXT", b"i": "INST", b"o": "OBJ"}
_IMPORTABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LISTED = 5


class Verdict(StrEnum):
    """What is to be thought of a file."""

    CLEAN = "CLEAN"
    UNKNOWN = "UNKNOWN"
    DANGEROUS = "DANGEROUS"


class Auditor(Walker):
    """A Walker that notes which bytes are loaded: what that returns may be dropped again."""

    def __init__(self, buffer: Buffer, start: int, where: str) -> None:
        super().__init__(buffer, start, where)
        self.loaded: list[bytes | Span] = []

    def call(self, function: Node, args: Node, kwargs: Node = None) -> None:
        """As `Walker.call`, noting bytes that are loaded in their turn."""
        if isinstance(function, Global) and function.path == LOADS_BYTES:
            self.loaded.extend(args if isinstance(args, tuple) else ())
        super().call(function, args, kwargs)

    @property
    def obscure(self) -> list[str]:
        """The opcodes it saw that weights have no use for."""
        return [name for codes, name in OBSCURE.items() if any(self.seen[code] for code in codes)]


def counts_as_pickle(walker: Auditor, *, is_whole: bool) -> bool:
    """Whether bytes that need not be a pickle, as those of a storage, are judged as one.

    Any bytes can be: `(.` is an empty tuple's. What chance doesn't give is a name that Python could
    import, and either the rest of a whole pickle around it, or an opcode PROTO at the start.
    """
    starts_as_one = walker.buffer[walker.start : walker.start + 1] == PROTO
    return (is_whole or starts_as_one) and any(map(is_importable, walker.globals))


def is_importable(found: Global) -> bool:
    """Whether a name is one that Python could import: chance bytes are not."""
    return bool(_IMPORTABLE.fullmatch(found.module) and _IMPORTABLE.fullmatch(found.name))


@dataclass(slots=True)
class Findings:
    """What is found in one file: names, dangers by name, doubts in words."""

    allow: Sequence[str] = ()
    globals: dict[Global, None] = field(default_factory=dict)
    dangers: dict[str, str] = field(default_factory=dict)
    doubts: dict[str, None] = field(default_factory=dict)

    def doubt(self, reason: str) -> None:
        """Note what keeps the file from being clean."""
        self.doubts[reason] = None

    def audit(self, walker: Auditor, where: str) -> None:
        """Judge what a walker saw, whether it came to the end or not."""
        self.judge(walker.globals, where)
        for opcode in walker.obscure:
            self.doubt(f"opcode {opcode}, which weights have no use for, in {where}")
        if ("call", None) in walker.uses:
            self.doubt(f"a call of what no name stands for, in {where}")

    def judge_dangers(self, found: Iterable[Global], where: str) -> None:
        """Note only the dangers among names that may have come about by chance."""
        self.judge((name for name in found if is_importable(name) and danger(name)), where)

    def judge(self, found: Iterable[Global], where: str) -> None:
        """Note names that a pickle would import, and the dangers among them."""
        for name in dict.fromkeys(found):
            self.globals.setdefault(name)
            reason = danger(name)
            if reason is not None and not self._is_vouched_for(name):
                self.dangers.setdefault(shown(name), f"{shown(name)} {reason}, in {where}")

    def _is_vouched_for(self, name: Global) -> bool:
        """Whether a dangerous name is allowed: no wildcard does that, its full name does."""
        return is_allowed(name, [each for each in self.allow if not set(each) & set("*?[")])

    @property
    def unvouched(self) -> list[str]:
        """The names, sorted, that are on no list."""
        return sorted({shown(name) for name in self.globals if not is_allowed(name, self.allow)})

    @property
    def verdict(self) -> Verdict:
        """What all of it comes to."""
        if self.dangers:
            return Verdict.DANGEROUS
        return Verdict.UNKNOWN if self.doubts or self.unvouched else Verdict.CLEAN

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the file is not clean, in words, the worst first."""
        names = [name for name in self.unvouched if name not in self.dangers]
        rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        vouched = [f"nobody vouches for {', '.join(names[:_LISTED])}{rest}"] if names else []
        return (*self.dangers.values(), *vouched, *self.doubts)


def shown(name: Global) -> str:
    """Return a dotted name as Python 3 has it, fit for one line."""
    path = in_python_3(name).path
    return path if _IMPORTABLE.fullmatch(path) else quoted(path)
