"""`layers`: the modules in the order they are called, by the names that other commands take."""

from collections import Counter
from collections.abc import Sequence

import torch

from pttool.core.model.forward import run_forward
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.report import Column, Report
from pttool.errors import InputError

COLUMNS = (
    Column("name", "Name"),
    Column("type", "Type"),
    Column("output_shape", "Output", "shape"),
    Column("call", "Call", "count"),
    Column("calls", "Calls", "count"),
)


def layers(resolved: Resolved, specs: Sequence[InputSpec], *, batch: int | None = 1) -> Report:
    """Return one item per call of a module, but the root's: name, type, output shape, which call.

    `call` counts the calls of one module from 0; `calls` is how many there are. Modules that are
    never called are in the summary (`never_called`), since they have no output to take.

    Raises as `forward.run_forward` does.
    """
    forward = run_forward(resolved, specs, batch=batch)
    seen: Counter[int] = Counter()
    items = []
    for _, row in forward.rows[1:]:
        if row.calls:
            call = seen[id(row.module)]
            seen[id(row.module)] += 1
            items.append(
                {
                    "name": row.name,
                    "type": type(row.module).__name__,
                    "output_shape": row.output_shape,
                    "call": call,
                    "calls": row.calls,
                }
            )
    if isinstance(resolved.module, torch.jit.ScriptModule):
        raise InputError(
            f"{resolved.name}: TorchScript runs as one, its layers can't be seen",
            "list the model's",
        )
    called = {id(row.module) for _, row in forward.rows if row.calls}
    never = [n for n, m in forward.resolved.module.named_modules() if n and id(m) not in called]
    summary = {
        "model": resolved.name,
        "source": resolved.source,
        "device": forward.resolved.device,
        "never_called": never,
    }
    footer = (Column("never_called", "Never called"),) if never else ()
    fields = tuple(column.key for column in COLUMNS)
    return Report(fields, COLUMNS, items, summary, footer, forward.notes, forward.failure)
