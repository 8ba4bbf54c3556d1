"""`freeze`: which parameters a set of patterns would freeze, and what would be left to train."""

from collections.abc import Sequence

from torch import nn
from torch.nn.parameter import is_lazy

from pttool.core.model.names import NamedTensor, parameters_by_name
from pttool.core.model.parameters import lazy_note, numel
from pttool.core.model.patterns import first_match, nearest
from pttool.core.model.resolve import Resolved
from pttool.core.report import Column, Report
from pttool.errors import UsageError

COLUMNS = (
    Column("name", "Name"),
    Column("shape", "Shape", "shape"),
    Column("numel", "Elements", "count"),
    Column("pattern", "Pattern"),
    Column("was_trainable", "Was trainable", "flag"),
)
FOOTER = (
    Column("params", "Parameters", "count"),
    Column("trainable_before", "Trainable before", "count"),
    Column("trainable_after", "Trainable after", "count"),
    Column("frozen_after", "Frozen after", "count"),
)


def freeze(resolved: Resolved, patterns: Sequence[str]) -> Report:
    """Return the parameters that `patterns` would freeze; the module is left as it is.

    A pattern is a glob for the whole name of a parameter or of a module that holds it, so `layer1`
    is all of that module and `conv1` isn't `conv10`. Raises UsageError for one without a match.
    """
    parameters = parameters_by_name(resolved.module)
    matched = {named.name: _matching(named, patterns) for named in parameters}
    for pattern in patterns:
        if not any(_matching(named, [pattern]) for named in parameters):
            raise _no_match(pattern, resolved.module)
    chosen = [named for named in parameters if matched[named.name]]
    before = numel([named for named in parameters if named.tensor.requires_grad])
    left = [n for n in parameters if n.tensor.requires_grad and not matched[n.name]]
    summary = {
        "model": resolved.name,
        "source": resolved.source,
        "params": numel(parameters),
        "trainable_before": before,
        "trainable_after": numel(left),
        "frozen_after": numel(parameters) - numel(left),
    }
    notes = _notes(resolved.module, chosen) + lazy_note(chosen)
    items = [_item(named, matched[named.name] or "") for named in chosen]
    fields = tuple(column.key for column in COLUMNS)
    return Report(fields, COLUMNS, items, summary, FOOTER, notes)


def _matching(named: NamedTensor, patterns: Sequence[str]) -> str | None:
    return first_match((named.name, *named.aliases), patterns)


def _no_match(pattern: str, module: nn.Module) -> UsageError:
    names = ", ".join(nearest(pattern, module))
    return UsageError(f"{pattern!r} matches no parameter or module", f"nearest: {names}")


def _item(named: NamedTensor, pattern: str) -> dict[str, object]:
    known = not is_lazy(named.tensor)
    return {
        "name": named.name,
        "shape": list(named.tensor.shape) if known else None,
        "numel": named.tensor.numel() if known else None,
        "pattern": pattern,
        "was_trainable": named.tensor.requires_grad,
    }


def _notes(module: nn.Module, chosen: Sequence[NamedTensor]) -> tuple[str, ...]:
    holders = {named.name.rpartition(".")[0] for named in chosen}
    moving = [
        name
        for name in holders
        if getattr(module.get_submodule(name), "track_running_stats", False)
    ]
    if not moving:
        return ()
    return (
        f"{len(moving)} of the frozen layers keep running statistics, which still move in train "
        "mode: put those layers into eval mode too",
    )
