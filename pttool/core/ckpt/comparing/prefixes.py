"""Find the change of prefix with which the names of two state dicts meet."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pttool.core.ckpt.editing.renaming import DATA_PARALLEL, Renaming

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]

# Names nested deeper, and prefixes rarer than the first few, are not looked at.
DEEPEST_PREFIX = 32
PREFIXES_TRIED = 3


@dataclass(frozen=True, slots=True)
class PrefixChange:
    """A renaming after which so many names are wanted, and of the shape that is wanted.

    `wrappers` are the segments that go from the names besides a prefix.
    """

    renaming: Renaming
    matched: int
    wrappers: tuple[str, ...] = ()

    def command(self, file: str) -> str:
        """Return the command that makes the change."""
        strip, add = self.renaming.prefix, self.renaming.added
        options = [f"pttool ckpt strip-dataparallel {shlex.quote(file)} -o OUT"]
        if (add and (strip or self.wrappers)) or strip not in ("", DATA_PARALLEL):
            options.append(f"--prefix {shlex.quote(strip)}")
        if add:
            options.append(f"--add-prefix {shlex.quote(add)}")
        if self.renaming.partial:
            options.append("--partial")
        return " ".join(options)


def matching(names: Shapes, wanted: Shapes) -> int:
    """Return how many names are wanted with the shape that they have."""
    return sum(wanted.get(name) == shape for name, shape in names.items())


def renamed(names: Shapes, renaming: Renaming) -> dict[str, str]:
    """Return the names by what they become; of two that would meet, the first."""
    found: dict[str, str] = {}
    for name, new in zip(names, renaming.all_renamed(list(names)), strict=True):
        found.setdefault(new, name)
    return found


def better_prefix(names: Shapes, wanted: Shapes) -> PrefixChange | None:
    """Return the change with which most names match, or None where none is better than as it is.

    Tried are the wrappers of DataParallel, torch.compile and FSDP, and prefixes after or before
    which most names end like wanted ones.
    """
    best, most = None, matching(names, wanted)
    for renaming in _candidates(names, wanted):
        changed = {new: names[old] for new, old in renamed(names, renaming).items()}
        count = matching(changed, wanted)
        if count > most:
            best, most = renaming, count
    if best is None:
        return None
    segments = {part for name in names for part in name.split(".")}
    return PrefixChange(best, most, tuple(part for part in best.wrappers if part in segments))


def _candidates(names: Shapes, wanted: Shapes) -> Iterator[Renaming]:
    """Yield renamings, the simplest first."""
    yield Renaming()
    plain = Renaming(prefix="")
    unwrapped = {new: names[old] for new, old in renamed(names, plain).items()}
    stripped = _prefixes(unwrapped, wanted)
    for prefix in stripped:
        yield Renaming(prefix, partial=not all(name.startswith(prefix) for name in unwrapped))
    for added in _prefixes(wanted, unwrapped):
        yield Renaming(prefix="", added=added)
    for prefix in _common_prefixes(unwrapped):
        short = Renaming(prefix)
        inner = {new: names[old] for new, old in renamed(names, short).items()}
        for added in _prefixes(wanted, inner):
            yield Renaming(prefix, added)


def _prefixes(names: Shapes, wanted: Shapes) -> list[str]:
    """Return the prefixes without which most names are wanted ones of the same shape."""
    found: Counter[str] = Counter()
    for name, shape in names.items():
        at = name.find(".")
        for _ in range(DEEPEST_PREFIX):
            if at < 0:
                break
            if wanted.get(name[at + 1 :]) == shape:
                found[name[: at + 1]] += 1
            at = name.find(".", at + 1)
    return [prefix for prefix, _ in found.most_common(PREFIXES_TRIED)]


def _common_prefixes(names: Shapes) -> Iterator[str]:
    """Yield the first, the first two ... segments that all names share."""
    # What the first and the last in order share, all do.
    ends = (min(names, default="").split("."), max(names, default="").split("."))
    prefix = ""
    for segment, other in list(zip(*ends, strict=False))[:PREFIXES_TRIED]:
        if segment != other or f"{prefix}{segment}" in names:
            return
        prefix += f"{segment}."
        yield prefix
