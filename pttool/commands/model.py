"""`pttool model`: what a model is made of and what it costs."""

from typing import Annotated

from typer import Option

from pttool.app import noun, verb
from pttool.core.model.fields import Sort, parse_fields
from pttool.errors import UsageError
from pttool.options import BuildOptions, InputOptions, Mode, Model, OutputOptions
from pttool.output import emit

app = noun("Layers, parameters and MACs of a model, counted without its weights.")


@verb(app)
def summary(
    model: Model,
    *,
    inputs: InputOptions,
    depth: Annotated[
        int | None,
        Option("--depth", metavar="N", min=0, help="Leave out rows deeper than N."),
    ] = None,
    columns: Annotated[
        str | None,
        Option("--columns", metavar="NAME,...", help="Show just these fields, in this order."),
    ] = None,
    mode: Annotated[Mode, Option("--mode", help="Run as for inference or for training.")] = (
        Mode.EVAL
    ),
    build: BuildOptions,
    output: OutputOptions,
) -> None:
    """Show every layer of one forward: shapes, kernel, parameters and MACs, with the totals.

    The forward runs on torch's meta device, which needs no memory for weights. A row includes what
    lies below it; a parameter counts once, where it is first used. MACs are multiply-accumulates of
    convolutions, matrix products and attention.

    Examples:
        pttool model summary resnet18 -i 3,224,224
        pttool model summary vit_b_16 --depth 1
        pttool model summary net.py:Net -i ids:int64:128 -i mask:bool:128 -b 8
        pttool model summary resnet18 --kw num_classes=10 --json | jq .summary.macs
    """
    destination, specs = output.choose(), inputs.specs()
    fields = None if columns is None else parse_fields(columns)
    resolved = build.resolve(model)
    from pttool.core.model.summary import summary as summarise

    training = mode is Mode.TRAIN
    report = summarise(resolved, specs, batch=inputs.batch_size, training=training, depth=depth)
    emit("model summary", report.select(fields) if fields else report, destination)


@verb(app)
def params(
    model: Model,
    *,
    by_module: Annotated[
        bool, Option("--by-module", help="One row for each module that holds parameters.")
    ] = False,
    filter: Annotated[
        list[str],
        Option(
            "--filter",
            metavar="GLOB",
            help="List only parameters whose whole name matches; repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    sort: Annotated[
        Sort | None, Option("--sort", help="Largest first, or by name.", show_default=False)
    ] = None,
    frozen: Annotated[bool, Option("--frozen", help="List only frozen parameters.")] = False,
    trainable: Annotated[
        bool, Option("--trainable", help="List only trainable parameters.")
    ] = False,
    build: BuildOptions,
    output: OutputOptions,
) -> None:
    """List every parameter: name, shape, dtype, elements and bytes, shared ones once.

    No forward is run and no memory is taken for weights.

    Examples:
        pttool model params resnet18
        pttool model params vit_b_16 --by-module --sort numel
        pttool model params resnet18 --filter '*.bn*.weight' --csv
        pttool model params net.py:Net --frozen --json | jq .summary.params
    """
    destination = output.choose()
    if frozen and trainable:
        raise UsageError("--frozen and --trainable together list nothing", "give one of them")
    resolved = build.resolve(model)
    from pttool.core.model.parameters import Selection
    from pttool.core.model.parameters import params as list_params

    selection = Selection(filter, trainable=not frozen, frozen=not trainable)
    emit(
        "model params",
        list_params(resolved, selection, sort=sort, by_module=by_module),
        destination,
    )
