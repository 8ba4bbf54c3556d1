"""Take the names of wrappers (`module.`, `_orig_mod`, ...) out of the state dicts of a checkpoint.

Source: torch.nn.modules.utils.consume_prefix_in_state_dict_if_present, which does it in memory.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from pttool.core.ckpt.containers.safetensors import METADATA
from pttool.core.ckpt.editing.editable import editable
from pttool.core.ckpt.editing.named_groups import Group, groups, texts_in_lists
from pttool.core.ckpt.editing.renaming import Renaming
from pttool.core.ckpt.editing.safetensors_names import rename, tensor_names
from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.pickles.edits import Edit, edits
from pttool.core.ckpt.pickles.nodes import Text
from pttool.core.ckpt.types import Format
from pttool.core.ckpt.weights.state_dicts import PARALLEL_WRAPPERS
from pttool.core.report import Column, Report
from pttool.errors import InputError

PICKLED_WRAPPER = "holds a pickled DataParallel: extract takes its weights, without module."
FIELDS = ("state_dict", "key", "new_key")
COLUMNS = (
    Column("state_dict", "State dict", optional=True),
    Column("key", "Key"),
    Column("new_key", "Becomes"),
)
FOOTER = (
    Column("renamed", "Keys renamed", "count"),
    Column("keys", "Keys in all", "count"),
    Column("output", "Written to"),
    Column("size_bytes", "Size", "bytes"),
)


@dataclass(frozen=True, slots=True)
class Renamed:
    """A key that changes, and the title of the dict that has it."""

    state_dict: str
    text: Text
    new: str


def strip_dataparallel(
    path: Path, target: Path | None, renaming: Renaming, *, dry_run: bool = False
) -> Report:
    """Save a checkpoint under other names; `target` None means in place.

    Renamed are the tensors of state dicts, wherever they are nested, with their `_metadata`, and
    parameters that an optimizer's state names. All else stays byte for byte. Raises InputError for
    a file that can't be read or edited, and for two names that would become one.
    """
    if recognise(path) is Format.SAFETENSORS:
        return _in_safetensors(path, target or path, renaming, dry_run=dry_run)
    with editable(path) as opened:
        found = groups(opened)
        renamed = [one for group in found for one in _renamed(group, renaming, path)]
        new_names = {str(one.text): one.new for one in renamed}
        changes = {one.text.at: one.new for one in renamed}
        for group in found:
            changes |= _in_metadata(group, renaming)
        changes |= {
            text.at: new_names[text] for text in texts_in_lists(opened) if text in new_names
        }
        if not dry_run:
            others: list[list[Edit]] = [[] for _ in opened.inner]
            opened.save([edits(opened.main, changes), *others], target or path)
        wrapped = any(call.path.endswith(PARALLEL_WRAPPERS) for call in opened.main.calls)
    rows = [(one.state_dict, str(one.text), one.new) for one in renamed]
    report = _report(path, target or path, {g.title: g.names for g in found}, rows, renaming)
    return report.noting(f"{path}: {PICKLED_WRAPPER}") if wrapped else report


def _in_safetensors(path: Path, target: Path, renaming: Renaming, *, dry_run: bool) -> Report:
    names = tensor_names(path)
    new = new_keys("", names, {METADATA}, renaming, path)
    rows = [("", old, name) for old, name in zip(names, new, strict=True) if old != name]
    if not dry_run:
        rename(path, target, {old: name for _, old, name in rows})
    return _report(path, target, {"": names}, rows, renaming)


def new_keys(
    title: str, names: Sequence[str], others: Set[str], renaming: Renaming, path: Path
) -> list[str]:
    """Return the new names of one state dict.

    Raises InputError for two that would be one, were the prefix taken where it is.
    """
    taken = {name: name for name in others}
    would_be = replace(renaming, partial=True).all_renamed(names)
    for old, name in zip(names, would_be, strict=True):
        if taken.setdefault(name, old) != old:
            where = f" of {title}" if title else ""
            raise InputError(
                f"{path}: {taken[name]} and {old}{where} would both be {name}",
                "rename or leave out one of them first",
            )
    return renaming.all_renamed(names)


def _renamed(group: Group, renaming: Renaming, path: Path) -> list[Renamed]:
    own = renaming if group.is_state_dict else replace(renaming, added="")
    new = new_keys(group.title, group.names, group.others, own, path)
    return [
        Renamed(group.title, text, name)
        for text, name in zip(group.names, new, strict=True)
        if name != text
    ]


def _in_metadata(group: Group, renaming: Renaming) -> dict[int, str]:
    """Return the new keys of `_metadata`, which are modules' names: the root's is empty.

    What was the wrapped module's becomes the root's, as torch's own helper has it.
    """
    last = ".weight"
    strip = renaming.strips(group.names)
    changes = {}
    for text in group.metadata:
        name = renaming.renamed(text + last if text else last[1:], strip=strip)
        new = (renaming.added + name).removesuffix(last[1:]).removesuffix(".")
        if new != text and text:
            changes[text.at] = new
    return changes


def _report(
    path: Path,
    target: Path,
    state_dicts: Mapping[str, Sequence[str]],
    renamed: Sequence[tuple[str, str, str]],
    how: Renaming,
) -> Report:
    counts = Counter(state_dict for state_dict, _, _ in renamed)
    notes = []
    for title, names in state_dicts.items():
        having = sum(map(how.has_prefix, names))
        of_all = f"of {len(names)} keys" + (f" of {title}" if title else "")
        if counts[title]:
            notes.append(f"{path}: {counts[title]} {of_all} renamed")
        elif having and not how.strips(names):
            advice = f"begin with {how.prefix}: --partial strips those"
            notes.append(f"{path}: {having} {of_all} {advice}")
    return Report(
        fields=FIELDS,
        columns=COLUMNS,
        items=[dict(zip(FIELDS, row, strict=True)) for row in renamed],
        summary={
            "renamed": len(renamed),
            "keys": sum(map(len, state_dicts.values())),
            "output": str(target),
            "size_bytes": target.stat().st_size if target.exists() else None,
        },
        footer=FOOTER,
        notes=tuple(notes or [f"{path}: nothing to strip"]),
    )
