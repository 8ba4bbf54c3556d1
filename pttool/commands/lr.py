"""`pttool lr`: the learning rates that a scheduler of torch will set."""

from math import inf
from typing import Annotated

from typer import Argument, Option

from pttool.app import noun, verb
from pttool.commands.plot_options import Log, PlotOptions
from pttool.errors import UsageError
from pttool.options import OutputOptions
from pttool.output import emit

app = noun("The learning rate at every epoch or step, from torch's own schedulers.")

Spec = Annotated[
    str,
    Argument(
        metavar="SPEC",
        show_default=False,
        help="Schedulers, one after the other with + or multiplied with *: warmup(N), linear, "
        "constant, step(N), multistep(N,M), exp(G), poly, cosine, restarts(N), cyclic(N,base=LR), "
        "onecycle.",
    ),
]
Epochs = Annotated[int, Option("--epochs", metavar="N", min=1, help="How many epochs there are.")]
Rate = Annotated[
    float,
    Option("--lr", metavar="X", help="The optimizer's lr; the highest of cyclic and onecycle."),
]
StepsPerEpoch = Annotated[
    int,
    Option(
        "--steps-per-epoch",
        metavar="N",
        min=1,
        help="Step the scheduler so often per epoch; SPEC stays in epochs (steps: 500s).",
    ),
]


@verb(app)
def table(
    spec: Spec,
    *,
    epochs: Epochs,
    lr: Rate,
    steps_per_epoch: StepsPerEpoch = 1,
    every: Annotated[
        int, Option("--every", metavar="N", min=1, help="List each N-th step only.")
    ] = 1,
    output: OutputOptions,
) -> None:
    """List the learning rate that each epoch or step is made with, counted from 0.

    The values are what torch's scheduler sets when it is stepped; the footer shows the code that
    makes it. Lengths are in epochs, factors per epoch; the last phase lasts to the end, as do
    cosine, poly, linear and constant without a length. A phase without a length of its own, as
    step's, gets one with for=. warmup(N) rises in N equal steps, the first of which is never 0.

    Examples:
        pttool lr table 'warmup(5)+cosine' --epochs 90 --lr 0.1
        pttool lr table 'multistep(30, 60, g=0.1)' --epochs 90 --lr 0.1 --csv
        pttool lr table onecycle --epochs 3 --lr 0.01 --steps-per-epoch 100 --every 50
    """
    destination = output.choose()
    _check(lr)
    from pttool.core.lr.spec import parse

    parsed = parse(spec)
    from pttool.core.lr.table import table as list_rates

    report = list_rates(parsed, epochs=epochs, lr=lr, steps_per_epoch=steps_per_epoch, every=every)
    emit("lr table", report, destination)


@verb(app)
def plot(
    spec: Spec,
    *,
    epochs: Epochs,
    lr: Rate,
    steps_per_epoch: StepsPerEpoch = 1,
    log: Log = False,
    output: PlotOptions,
) -> None:
    """Plot the learning rate over the epochs, and the momentum where the scheduler moves it.

    Drawn in the terminal, or as a picture with -o. `lr table --help` tells about SPEC.

    Examples:
        pttool lr plot 'warmup(5)+cosine' --epochs 90 --lr 0.1
        pttool lr plot 'warmup(50s)+cosine' --epochs 70 --lr 3e-4 --steps-per-epoch 200
        pttool lr plot 'step(30, for=60)+exp(0.9)' --epochs 90 --lr 0.1 --log -o lr.png
    """
    canvas = output.choose()
    _check(lr)
    from pttool.core.lr.spec import parse

    parsed = parse(spec)
    from pttool.core.lr.plot import plot as make_plot

    canvas.emit(
        "lr plot",
        *make_plot(parsed, epochs=epochs, lr=lr, steps_per_epoch=steps_per_epoch, log=log),
    )


def _check(lr: float) -> None:
    if not 0 < lr < inf:
        raise UsageError(f"--lr {lr:g}: is no learning rate", "give a number above 0")
