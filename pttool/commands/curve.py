"""`pttool curve`: learning curves from logs, without a server."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pttool.commands.plot_options import Log, PlotOptions


def curve(
    logs: Annotated[
        list[Path],
        Argument(
            metavar="LOG...",
            show_default=False,
            help="CSV, TSV, JSON lines, or TensorBoard's event files and folders; - reads stdin.",
        ),
    ],
    *,
    columns: Annotated[
        list[str],
        Option(
            "-c",
            "--column",
            metavar="GLOB",
            help="Draw the columns of this name or glob; repeatable.",
            show_default=False,
        ),
    ] = (),  # type: ignore[assignment]
    x: Annotated[
        str | None,
        Option(
            "-x",
            metavar="COLUMN",
            help="Draw over this column, or over `row`; else step, iteration or epoch.",
            show_default=False,
        ),
    ] = None,
    smooth: Annotated[
        float,
        Option(
            "--smooth",
            metavar="W",
            min=0,
            max=0.9999,
            help="Smooth as TensorBoard does: 0 to 0.99.",
        ),
    ] = 0.0,
    log: Log = False,
    output: PlotOptions,
) -> None:
    """Plot columns of training logs: a panel for each column, a line for each log.

    Drawn in the terminal, or as a picture with -o. Without -c, all columns of numbers are drawn
    that count no progress, six at most. A log may still be growing. Points go to --json, --csv and
    the like, with the best and last value of each curve in the summary.

    Examples:
        pttool curve metrics.csv
        pttool curve runs/*/metrics.csv -c 'val_*' -x epoch --smooth 0.6
        pttool curve log.jsonl -c loss --log -o loss.png
        pttool curve runs/ --json | jq '.summary.curves[] | {run, column, min, min_x}'
    """
    canvas = output.choose(inputs=logs)
    from pttool.core.curve.curve import curve as draw_curves

    canvas.emit("curve", *draw_curves(logs, columns=columns, x=x, smoothing=smooth, log=log))
