"""What differs between two checkpoints, of one format or two."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pttool.core.ckpt.batch import readable
from pttool.core.ckpt.comparing.compared_leaves import ONLY_A, ONLY_B, Pair, compared
from pttool.core.ckpt.comparing.prefixes import better_prefix
from pttool.core.ckpt.files.words import listed
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.paths import MODULE_PARTS, dotted, name_of
from pttool.core.ckpt.types import Checkpoint, Tensor, Value
from pttool.core.ckpt.weights.model_weights import WITH_TIES, model_weights
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError

FIELDS = (
    "key", "status", "a", "b", "max_abs_diff", "max_rel_diff", "equal_elements", "nonfinite_diffs",
    "numel",
)  # fmt: skip
COLUMNS = (
    Column("key", "Key"),
    Column("status", "Status"),
    Column("a", "A"),
    Column("b", "B"),
)
VALUE_COLUMNS = (
    Column("max_abs_diff", "Max abs", "score"),
    Column("max_rel_diff", "Max rel", "score"),
    Column("equal_elements", "Equal", "count"),
    Column("numel", "Elements", "count"),
)
FOOTER = (
    Column("tensors", "Tensors in both", "count"),
    Column("equal", "Equal", "count"),
    Column("changed", "Changed", "count"),
    Column("only_a", "Only in A", "count"),
    Column("only_b", "Only in B", "count"),
)
ROOT = "(root)"
HIDDEN_ENDS = tuple((part,) for part in MODULE_PARTS)

Leaves = Mapping[str, Tensor | Value]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its leaves by dotted name; `name` is what the user calls the file."""

    name: str
    checkpoint: Checkpoint
    leaves: Leaves

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of its tensors."""
        return {key: leaf.shape for key, leaf in self.leaves.items() if isinstance(leaf, Tensor)}


def diff(
    a: Path,
    b: Path,
    *,
    values: bool = False,
    key_a: str | None = None,
    key_b: str | None = None,
    pattern: str | None = None,
    every: bool = False,
) -> Report:
    """List the keys that only one has, and those with another shape, type or value.

    Both are compared whole, by dotted names: all but the order of keys, devices, requires_grad, and
    the `_metadata` of state dicts. Where a key is given, or just one of them is a state dict and no
    more, it is the weights, as `extract` finds them. `values` reads the elements: they are equal
    when their bits are. `pattern` is a glob of dotted names; with `every`, equal keys are listed
    too. The report fails where anything differs. Raises InputError for what can't be read.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(readable(path)) for path in (a, b)]
        first, second, note = _sides((a, b), files, (key_a, key_b), pattern)
        pairs = list(_pairs(first, second, read_elements=values))
    summary = _summary(first, second, pairs, values)
    differing = [pair for pair in pairs if not pair.is_equal]
    return Report(
        FIELDS,
        (*COLUMNS, *VALUE_COLUMNS) if values else COLUMNS,
        [_item(pair) for pair in (pairs if every else differing)],
        summary,
        FOOTER,
        (*note, *_notes(pairs, values)),
        _failure(first, second, summary) if differing else None,
    )


def _sides(
    paths: tuple[Path, Path],
    files: Sequence[Path],
    keys: tuple[str | None, str | None],
    pattern: str | None,
) -> tuple[Side, Side, tuple[str, ...]]:
    checkpoints = [read(file) for file in files]
    flat = list(map(_is_state_dict, checkpoints))
    with_ties = any(checkpoint.format in WITH_TIES for checkpoint in checkpoints)
    is_weights = flat[0] != flat[1] or with_ties or any(key is not None for key in keys)
    sides = []
    places = []
    for path, checkpoint, key in zip(paths, checkpoints, keys, strict=True):
        if is_weights:
            weights = model_weights(checkpoint, key)
            leaves: dict[str, Tensor | Value] = dict(weights.tensors)
            places.append(f"{path}: {dotted(weights.path) or 'all tensors'}")
        else:
            leaves = dict(_by_name(checkpoint))
        chosen = {n: leaf for n, leaf in leaves.items() if not pattern or fnmatchcase(n, pattern)}
        sides.append(Side(str(path), checkpoint, chosen))
    note = (f"only weights were compared: {'; '.join(places)}",) if is_weights else ()
    return sides[0], sides[1], note


def _is_state_dict(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint holds nothing but tensors, side by side."""
    is_flat = all(len(tensor.path) == 1 for tensor in checkpoint.tensors)
    return is_flat and bool(checkpoint.tensors) and all(map(_is_hidden, checkpoint.values))


def _is_hidden(leaf: Tensor | Value) -> bool:
    """Whether a leaf says nothing: the versions of modules, and empty dicts of a module's parts."""
    return "_metadata" in leaf.path or (isinstance(leaf, Value) and leaf.path[-1:] in HIDDEN_ENDS)


def _by_name(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor | Value]]:
    """Yield tensors and values by name; of several under one name, the others numbered."""
    seen: dict[str, int] = {}
    leaves: list[Tensor | Value] = [*checkpoint.tensors, *checkpoint.values]
    for leaf in leaves:
        if _is_hidden(leaf):
            continue
        name = name_of(leaf) or ROOT
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), leaf


def _pairs(a: Side, b: Side, *, read_elements: bool) -> Iterator[Pair]:
    """Yield what there is under each key: A's keys in its order, then those that only B has."""
    for key, leaf in a.leaves.items():
        other = b.leaves.get(key)
        checkpoints = (a.checkpoint, b.checkpoint)
        yield compared(key, leaf, other, checkpoints, read_elements=read_elements)
    for key, leaf in b.leaves.items():
        if key not in a.leaves:
            yield Pair(key, ONLY_B, None, leaf)


def _item(pair: Pair) -> dict[str, Any]:
    found = pair.difference
    return {
        "key": pair.key,
        "status": pair.status,
        "a": pair.text_a,
        "b": pair.text_b,
        "max_abs_diff": found.max_abs if found else None,
        "max_rel_diff": found.max_rel if found else None,
        "equal_elements": found.equal if found else None,
        "nonfinite_diffs": found.nonfinite if found else None,
        "numel": found.numel if found else None,
    }


def _summary(a: Side, b: Side, pairs: Sequence[Pair], values: bool) -> dict[str, Any]:
    only_a, only_b = (sum(pair.status == only for pair in pairs) for only in (ONLY_A, ONLY_B))
    equal = sum(pair.is_equal for pair in pairs)
    found = [pair.difference for pair in pairs if pair.difference is not None]
    apart = [each.max_abs for each in found if each.max_abs is not None]
    relative = [each.max_rel for each in found if each.max_rel is not None]
    is_unknown = not values or any(pair.unknown for pair in pairs)
    return {
        "a": a.name,
        "b": b.name,
        "tensors": sum(pair.is_of_tensors for pair in pairs),
        "equal": equal,
        "changed": len(pairs) - equal - only_a - only_b,
        "only_a": only_a,
        "only_b": only_b,
        "max_abs_diff": max(apart, default=None),
        "max_rel_diff": max(relative, default=None),
        "bit_equal": False if equal < len(pairs) else None if is_unknown else True,
    }


def _notes(pairs: Sequence[Pair], values: bool) -> Iterator[str]:
    if not values and any(pair.is_of_tensors for pair in pairs):
        yield "shapes and types of tensors were compared; --values compares their elements"
    in_bits = [p.key for p in pairs if p.difference is not None and p.difference.is_in_bits_alone]
    if in_bits:
        yield f"differ in bits alone, as 0 and -0 do: {listed(in_bits)}"
    by_reason: dict[str, list[str]] = {}
    for pair in pairs:
        if pair.unknown:
            by_reason.setdefault(pair.unknown, []).append(pair.key)
    for reason, keys in by_reason.items():
        yield f"elements not compared, {reason}: {listed(keys)}"


def _failure(a: Side, b: Side, summary: Mapping[str, Any]) -> CheckFailedError:
    words = {"changed": "changed", "only_a": "only in A", "only_b": "only in B"}
    said = [f"{summary[name]:,} {word}" for name, word in words.items() if summary[name]]
    message = f"{a.name} and {b.name} differ: {', '.join(said)}"
    return CheckFailedError(message, _hint(a, b) if not summary["tensors"] else None)


def _hint(a: Side, b: Side) -> str | None:
    """Return the change of prefix with which the keys of one would be those of the other."""
    found = [
        (change.matched, not change.renaming.added, change.command(side.name))
        for side, other in ((a, b), (b, a))
        if (change := better_prefix(side.shapes, other.shapes)) is not None
    ]
    return f"to rename the keys: {max(found)[2]}" if found else None
