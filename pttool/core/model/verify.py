"""`--verify`: the same totals by torchinfo, which is imported only here, as a second opinion."""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pttool.core.foreign import foreign_code
from pttool.core.model.forward import inputs_for, on_loan
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.report import Report
from pttool.errors import InputError, UnavailableError


def with_second_opinion(
    report: Report, resolved: Resolved, specs: Sequence[InputSpec], batch: int | None
) -> Report:
    """Return the report with torchinfo's figures and the differences to them.

    With inputs its MACs are compared too; they leave attention out and count a linear layer once
    for each row of the batch only, so a difference there is no surprise.

    Where torchinfo can't cope, its error is the report's failure. Raises UnavailableError where it
    is missing.
    """
    try:
        second = _by_torchinfo(resolved, specs, batch)
    except InputError as error:
        return replace(report, failure=report.failure or error)
    ours = {key: report.summary[key] for key in second if key in report.summary}
    notes = tuple(
        f"{key}: {value:,} here, {second[key]:,} by torchinfo, difference {value - second[key]:+,}"
        for key, value in ours.items()
    )
    differences = {key: value - second[key] for key, value in ours.items()}
    verified = {"torchinfo": second, "difference": differences}
    return replace(
        report,
        summary={**report.summary, "verify": verified},
        notes=(*report.notes, *notes),
    )


def _by_torchinfo(
    resolved: Resolved, specs: Sequence[InputSpec], batch: int | None
) -> dict[str, int]:
    try:
        import torchinfo
    except ModuleNotFoundError as error:
        raise UnavailableError("--verify needs torchinfo", "pip install torchinfo") from error
    model, device = resolved.module, resolved.device
    with (
        foreign_code(f"torchinfo on {resolved.name}"),
        on_loan(resolved, training=False),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        inputs = inputs_for(model, specs, batch, device) if specs else None
        data = None if inputs is None else list(inputs.positional)
        named: dict[str, Any] = {} if inputs is None else dict(inputs.named)
        statistics = torchinfo.summary(
            model, input_data=data, verbose=0, device=device, mode="eval", **named
        )
    figures = {"params": int(statistics.total_params)}
    if specs:
        figures["macs"] = int(statistics.total_mult_adds)
    return figures
