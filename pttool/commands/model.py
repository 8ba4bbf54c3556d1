"""`pttool model`: what a model is made of and what it costs."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pttool.app import noun, verb
from pttool.core.model.fields import Sort, parse_fields
from pttool.errors import UsageError
from pttool.options import BuildOptions, Force, InputOptions, Mode, Model, OutputOptions
from pttool.output import choose_text_output, emit, emit_text

app = noun("Layers, parameters and MACs of a model, counted without its weights.")

Verify = Annotated[bool, Option("--verify", help="Compare with torchinfo's figures.")]


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
    verify: Verify = False,
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
        pttool model summary retinanet_resnet50_fpn --weights COCO_V1 --depth 0
        pttool model summary net.py:Net -i ids:int64:128 -i mask:bool:128 -b 8
        pttool model summary resnet18 --kw num_classes=10 --json | jq .summary.macs
    """
    destination, specs = output.choose(model), inputs.specs()
    fields = None if columns is None else parse_fields(columns)
    resolved = build.resolve(model)
    from pttool.core.model.summary import summary as summarise

    training, batch = mode is Mode.TRAIN, inputs.batch_size
    report = summarise(resolved, specs, batch=batch, training=training, depth=depth)
    if verify:
        from pttool.core.model.verify import with_second_opinion

        report = with_second_opinion(report, resolved, specs or resolved.default_inputs, batch)
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
    verify: Verify = False,
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
    destination = output.choose(model)
    if frozen and trainable:
        raise UsageError("--frozen and --trainable together list nothing", "give one of them")
    if verify and (filter or frozen or trainable):
        raise UsageError("--verify is about all parameters", "leave out the filters")
    resolved = build.resolve(model)
    from pttool.core.model.parameters import Selection
    from pttool.core.model.parameters import params as list_params

    selection = Selection(filter, trainable=not frozen, frozen=not trainable)
    report = list_params(resolved, selection, sort=sort, by_module=by_module)
    if verify:
        from pttool.core.model.verify import with_second_opinion

        report = with_second_opinion(report, resolved, (), None)
    emit("model params", report, destination)


@verb(app)
def layers(
    model: Model, *, inputs: InputOptions, build: BuildOptions, output: OutputOptions
) -> None:
    """List the modules in the order they are called, with type and output shape.

    The names are what `features extract -l` takes, NAME:K for the K-th call of a module, and what
    `model freeze` takes.

    Examples:
        pttool model layers resnet18
        pttool model layers vit_b_16 --tsv --no-header | cut -f1
    """
    destination, specs = output.choose(model), inputs.specs()
    resolved = build.resolve(model)
    from pttool.core.model.layers import layers as list_layers

    emit("model layers", list_layers(resolved, specs, batch=inputs.batch_size), destination)


@verb(app)
def freeze(
    model: Model,
    patterns: Annotated[
        list[str], Argument(metavar="PATTERN...", help="Globs for names of parameters or modules.")
    ],
    *,
    build: BuildOptions,
    output: OutputOptions,
) -> None:
    """Show which parameters a set of patterns would freeze, and how many are left to train.

    A pattern matches whole names: `layer1` is all of that module, `conv1` never `conv10`.

    Examples:
        pttool model freeze resnet18 conv1 bn1 'layer[12]'
        pttool model freeze vit_b_16 '*.ln_*' --json | jq .summary.trainable_after
    """
    destination = output.choose(model)
    resolved = build.resolve(model)
    from pttool.core.model.freeze import freeze as would_freeze

    emit("model freeze", would_freeze(resolved, patterns), destination)


@verb(app)
def conv_size(
    chain: Annotated[
        list[str],
        Argument(metavar="LAYER...", help="conv, pool or convt with :kK,sS,pP,dD,opO,ceil."),
    ],
    *,
    input: Annotated[
        str, Option("-i", "--input", metavar="[C,]H,W", help="Size of the input; H alone for 1-d.")
    ],
    output: OutputOptions,
) -> None:
    """Compute output size, receptive field and stride of a chain of convolutions and pools.

    A pool's stride is its kernel unless given; `3x5` gives two dimensions different values.

    Examples:
        pttool model conv-size conv:k7,s2,p3 pool:k3,s2,p1 -i 3,224,224
        pttool model conv-size convt:k4,s2,p1 conv:k3,p1 -i 16,16 --json | jq .summary.output_size
    """
    destination = output.choose()
    from pttool.core.model.conv_size import conv_size as compute
    from pttool.core.model.spec import parse_space

    emit("model conv-size", compute(chain, parse_space(input)), destination)


@verb(app)
def graph(
    model: Model,
    *,
    inputs: InputOptions,
    depth: Annotated[
        int | None, Option("--depth", metavar="N", min=1, help="Draw modules no deeper than N.")
    ] = None,
    build: BuildOptions,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE: .dot or .svg.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Print which module's output goes into which, as a graph in Graphviz's DOT language.

    With -o FILE.svg it is drawn, where Graphviz's `dot` is installed.

    Examples:
        pttool model graph resnet18 --depth 2 > resnet18.dot
        pttool model graph resnet18 -o resnet18.svg
    """
    destination, specs = choose_text_output(output, (".dot", ".svg"), force=force), inputs.specs()
    resolved = build.resolve(model)
    from pttool.core.model.graph import graph as draw
    from pttool.core.model.graph import to_svg

    dot = draw(resolved, specs, batch=inputs.batch_size, depth=depth)
    is_svg = destination is not None and destination.suffix == ".svg"
    emit_text(to_svg(dot) if is_svg else dot, destination)
