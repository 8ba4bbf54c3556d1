"""`pttool features`: what a layer sees, for a folder of images."""

from typing import Annotated

from typer import Option

from pttool.app import noun, verb
from pttool.commands.features_options import (
    JoinAs,
    Layers,
    ModelOptions,
    Output,
    PictureOptions,
    Pictures,
    Root,
    RunningOptions,
    TargetOptions,
)
from pttool.commands.features_sharing import SharingOptions
from pttool.commands.progress import counting
from pttool.core.features.types import Format
from pttool.options import BuildOptions, FormatOptions, Model, OutputOptions
from pttool.output import emit

app = noun("What layers of a model give for pictures, bit for bit, at the speed of the model.")


@verb(app)
def extract(
    model: Model,
    paths: Pictures = None,
    *,
    layer: Layers = [],  # noqa: B006
    target: TargetOptions,
    loaded: ModelOptions,
    pictures: PictureOptions,
    root: Root = None,
    running: RunningOptions,
    sharing: SharingOptions,
    output: FormatOptions,
) -> None:
    """Write what layers give for each picture: an array for each layer, a row for each picture.

    The folder holds parts, LAYER/part-00000.npy and so on; ids.txt, whose line i names row i; and
    failures.jsonl, the pictures that can't be read, which have no row. The same command goes on
    with a run that was killed. -j, --shard and torchrun share the parts, and change no bit.

    Examples:
        pttool features extract resnet18 photos -l avgpool -o out --merge
        pttool features extract vgg16 photos -l relu5_3,fc7 -o out
        pttool features extract net.py:Net photos -l encoder --weights net.pt -o out
        torchrun --nproc-per-node 4 -m pttool features extract resnet50 photos -l gap -o out
    """
    destination, files, place = output.to_stdout(), pictures.paths(paths), target.target()
    request = loaded.request(model)
    from pttool.core.features.extract import extract as run
    from pttool.core.features.requests import Request

    asked = Request(
        files, layer, request, running.running(), pictures.reading(), target.part_size, root
    )
    with counting("pictures", paced=True) as progress:
        report = run(asked, sharing.sharing(), place, progress=progress)
    emit("features extract", report, destination)


@verb(app)
def layers(
    model: Model,
    *,
    input: Annotated[
        list[str],
        Option(
            "-i",
            "--input",
            metavar="D1,D2,...",
            help="Shape of a picture, C,H,W, for a model without one of its own.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    build: BuildOptions,
    output: OutputOptions,
) -> None:
    """List the layers of a model: what each gives for a picture, and how often it is called.

    The names are those that `extract -l` takes. No weights are needed.

    Examples:
        pttool features layers vgg16
        pttool features layers vit_b_16 --json | jq '.items[] | select(.never_called) | .name'
        pttool features layers net.py:Net -i 3,224,224
    """
    destination = output.choose(model)
    from pttool.core.model.spec import parse_input

    specs = [parse_input(text) for text in input]
    resolved = build.resolve(model)
    from pttool.core.features.layers import layers as list_layers

    emit("features layers", list_layers(resolved, specs), destination)


@verb(app)
def merge(
    folder: Output,
    *,
    format: JoinAs = Format.NPY,
    output: FormatOptions,
) -> None:
    """Join the parts of a folder, once all of them are there.

    LAYER.npy can be opened by numpy.load(mmap_mode="r"), without reading what isn't used. The
    parts stay, so that `extract` still knows what it has done.

    Examples:
        pttool features merge out
        pttool features merge out --format safetensors
    """
    destination = output.to_stdout()
    from pttool.core.features.merge import merge as join

    emit("features merge", join(folder, format), destination)
