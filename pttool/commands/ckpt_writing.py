"""The verbs of `pttool ckpt` that write a new checkpoint from the weights of another."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from pttool.commands.ckpt_options import (
    File,
    Filter,
    Key,
    NewFileOptions,
    check_suffix,
    output_folder,
)
from pttool.options import FormatOptions
from pttool.output import emit, note


class CastType(StrEnum):
    """Floating-point types to cast to, by torch's names and shorter ones."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"
    FP64 = "fp64"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"


def extract(
    file: File,
    *,
    new: NewFileOptions,
    key: Key = None,
    filter: Filter = None,
    compact: Annotated[
        bool, Option("--compact", help="Cut storages to what tensors use of them.")
    ] = False,
    output: FormatOptions,
) -> None:
    """Write only the weights: a state dict that loads with weights_only=True.

    From a training checkpoint, a Lightning one, safetensors, shards, or a whole pickled module
    whose class isn't installed: then in the order of its state_dict(), without the buffers that
    it doesn't save.

    Examples:
        pttool ckpt extract train.pt -o weights.pt
        pttool ckpt extract yolo.pt --key ema -o ema.pt
        pttool ckpt extract big.pt --filter 'backbone.*' --compact -o backbone.pt
    """
    destination, out = output.to_stdout(), new.target([file])
    check_suffix(out, safetensors=False)
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.extract import extract as extract_weights

    with readable(file, say=note) as path:
        report = extract_weights(path, out, key=key, filter=filter, compact=compact)
    emit("ckpt extract", report, destination)


def to_safetensors(
    file: File,
    *,
    new: NewFileOptions,
    key: Key = None,
    filter: Filter = None,
    output: FormatOptions,
) -> None:
    """Write the weights as safetensors, in bounded memory.

    Tensors that are the same are kept once, which is said and noted in the file's metadata;
    those that overlap otherwise get a copy each.

    Examples:
        pttool ckpt to-safetensors model.pt -o model.safetensors
        pttool ckpt to-safetensors train.ckpt --key state_dict -o model.safetensors
    """
    destination, out = output.to_stdout(), new.target([file])
    check_suffix(out, safetensors=True)
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.to_safetensors import to_safetensors as write

    with readable(file, say=note) as path:
        report = write(path, out, key=key, filter=filter)
    emit("ckpt to-safetensors", report, destination)


def to_torch(file: File, *, new: NewFileOptions, output: FormatOptions) -> None:
    """Write safetensors, or shards of them, as a file of torch.

    Names that the metadata says are tied come back, sharing their storage.

    Examples:
        pttool ckpt to-torch model.safetensors -o model.pt
    """
    destination, out = output.to_stdout(), new.target([file])
    check_suffix(out, safetensors=False)
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.to_torch import to_torch as write

    with readable(file, say=note) as path:
        report = write(path, out)
    emit("ckpt to-torch", report, destination)


def cast(
    file: File,
    *,
    dtype: Annotated[CastType, Option("--dtype", help="The floating-point type to cast to.")],
    new: NewFileOptions,
    key: Key = None,
    filter: Annotated[
        str | None,
        Option(
            "--filter",
            metavar="GLOB",
            help="Cast only names that match; the others stay.",
            show_default=False,
        ),
    ] = None,
    output: FormatOptions,
) -> None:
    """Write the weights with their floating-point tensors in another type.

    Integers, booleans and complex numbers stay as they are. What overflows is counted.

    Examples:
        pttool ckpt cast model.safetensors --dtype bf16 -o half.safetensors
        pttool ckpt cast model.pt --dtype fp16 --filter 'layers.*' -o mixed.pt
    """
    destination, out = output.to_stdout(), new.target([file])
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.cast import cast as cast_weights

    with readable(file, say=note) as path:
        report = cast_weights(path, dtype.value, out, key=key, filter=filter)
    emit("ckpt cast", report, destination)


def shard(
    file: File,
    *,
    folder: Annotated[
        Path | None,
        Option("-o", "--output", metavar="DIR", help="The folder to make.", show_default=False),
    ] = None,
    key: Key = None,
    max_size: Annotated[
        str, Option("--max-size", metavar="SIZE", help="Largest shard, as 5GB or 200MiB.")
    ] = "5GB",
    torch: Annotated[
        bool, Option("--torch", help="Write files of torch (.bin), not safetensors.")
    ] = False,
    output: FormatOptions,
) -> None:
    """Split the weights into files of a size, with an index, as Hugging Face has them.

    Examples:
        pttool ckpt shard model.safetensors --max-size 5GB -o shards
        pttool ckpt shard model.pt --max-size 200MB --torch -o shards
    """
    destination = output.to_stdout()
    out = output_folder(folder)
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.shard import shard as split
    from pttool.core.sizes import parse_size

    size = parse_size(max_size)
    with readable(file, say=note) as path:
        report = split(path, out, max_size=size, key=key, safetensors=not torch)
    emit("ckpt shard", report, destination)


def merge(file: File, *, new: NewFileOptions, output: FormatOptions) -> None:
    """Join the shards that an index lists into one file: .safetensors, or torch's.

    Examples:
        pttool ckpt merge shards -o model.safetensors
        pttool ckpt merge shards/model.safetensors.index.json -o model.pt
    """
    destination, out = output.to_stdout(), new.target([file])
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.merge import merge as join

    with readable(file, say=note) as path:
        report = join(path, out)
    emit("ckpt merge", report, destination)
