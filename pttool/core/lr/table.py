"""`lr table`: the learning rate of each step as rows."""

from pttool.core.lr.plan import Plan, plan
from pttool.core.lr.schedule import Rates, rates
from pttool.core.lr.spec import Spec
from pttool.core.report import Column, Report

FIELDS = ("epoch", "step", "lr", "momentum")
EPOCH, STEP = Column("epoch", "Epoch", "count"), Column("step", "Step", "count")
LR, MOMENTUM = Column("lr", "LR", "number"), Column("momentum", "Momentum", "number")
FOOTER = (
    Column("lr_first", "First", "number"),
    Column("lr_max", "Highest", "number"),
    Column("lr_min", "Lowest", "number"),
    Column("lr_last", "Last", "number"),
    Column("scheduler", "In torch"),
)


def table(
    spec: Spec, *, epochs: int, lr: float, steps_per_epoch: int = 1, every: int = 1
) -> Report:
    """Return a row for each step (each `every`-th): the lr that the step is made with.

    Epochs and steps count from 0, as torch's `last_epoch` does. `lr` is the optimizer's own, or the
    highest of a scheduler with bounds. Raises UsageError as `plan` and `rates` do.
    """
    planned = plan(spec, epochs=epochs, steps_per_epoch=steps_per_epoch, lr=lr)
    return report(spec, planned, rates(planned, lr=lr), every=every)


def report(spec: Spec, planned: Plan, found: Rates, *, every: int = 1) -> Report:
    """Return the rates as a report."""
    per_epoch, momenta = planned.steps_per_epoch, found.momentum
    return Report(
        fields=FIELDS,
        columns=(
            EPOCH,
            *((STEP,) if per_epoch > 1 else ()),
            LR,
            *((MOMENTUM,) if momenta is not None else ()),
        ),
        items=[
            {
                "epoch": step // per_epoch,
                "step": step,
                "lr": found.lr[step],
                "momentum": None if momenta is None else momenta[step],
            }
            for step in range(0, planned.steps, every)
        ],
        summary={
            "spec": spec.text,
            "scheduler": str(planned.call),
            "epochs": planned.steps // per_epoch,
            "steps_per_epoch": per_epoch,
            "steps": planned.steps,
            "lr_first": found.lr[0],
            "lr_max": max(found.lr),
            "lr_min": min(found.lr),
            "lr_last": found.lr[-1],
        },
        footer=FOOTER,
        notes=planned.notes,
    )
