"""`lr plot`: the learning rate over the epochs as a plot."""

from pttool.core.lr.plan import plan as make_plan
from pttool.core.lr.schedule import rates
from pttool.core.lr.spec import Spec
from pttool.core.lr.table import report
from pttool.core.plots.panels import Curve, Panel, Plot
from pttool.core.report import Report


def plot(
    spec: Spec, *, epochs: int, lr: float, steps_per_epoch: int = 1, log: bool = False
) -> tuple[Plot, Report]:
    """Return a panel of the lr, one of the momentum where it moves, and the rows of `table`.

    x is in epochs, counted from 0. Raises UsageError as `table` does.
    """
    planned = make_plan(spec, epochs=epochs, steps_per_epoch=steps_per_epoch, lr=lr)
    found = rates(planned, lr=lr)
    x = [step / steps_per_epoch for step in range(planned.steps)]
    panels = [Panel("lr", (Curve("lr", x, found.lr),), log_y=log)]
    if found.momentum is not None:
        panels.append(Panel("momentum", (Curve("lr", x, found.momentum),)))
    title = f"{spec.text}, lr {lr:g}"
    return Plot(tuple(panels), "epoch", title), report(spec, planned, found)
