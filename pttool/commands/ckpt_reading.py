"""The verbs of `pttool ckpt` that read and judge."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pttool.commands.ckpt_options import FailOn, File, Files, Filter, Key, Sort
from pttool.options import BuildOptions, ListOptions, Model, OutputOptions
from pttool.output import emit

All = Annotated[bool, Option("--all", help="List what is fine in the table too.")]


def inspect(
    files: Files = None,
    *,
    listed: ListOptions,
    filter: Filter = None,
    sort: Annotated[
        Sort | None, Option("--sort", help="By name or type, or the largest first.")
    ] = None,
    tree: Annotated[bool, Option("--tree", help="Draw names as a tree, with sums.")] = False,
    depth: Annotated[
        int | None,
        Option(
            "--depth",
            metavar="N",
            min=1,
            help="Sum up what has more than N parts in its name.",
            show_default=False,
        ),
    ] = None,
    stats: Annotated[
        bool,
        Option("--stats", help="Read the elements: minimum, maximum, mean, NaN and infinities."),
    ] = False,
    output: OutputOptions,
) -> None:
    """List tensors and values of checkpoints, and tell who can load them.

    Reads torch's zips, legacy files and tars, safetensors, shards, distributed checkpoints,
    pickles, npz and npy, told apart by their bytes. Nothing in a file is run, and no byte of a
    tensor is read without --stats.

    Examples:
        pttool ckpt inspect model.pt
        pttool ckpt inspect model.pt --tree --depth 2
        pttool ckpt inspect model.pt --json | jq .summary.weights_only_loadable
        find . -name '*.pt' -print0 | pttool ckpt inspect --files-from - -0 --ndjson
    """
    paths = listed.with_listed(files)
    destination = output.choose(inputs=paths)
    from pttool.core.ckpt.inspect import inspect as inspect_files

    report = inspect_files(
        paths,
        pattern=filter,
        sort=None if sort is None else sort.value,
        depth=depth,
        tree=tree,
        statistics=stats,
    )
    emit("ckpt inspect", report, destination)


def scan(
    files: Files = None,
    *,
    listed: ListOptions,
    allow: Annotated[
        list[str],
        Option(
            "--allow",
            metavar="NAME",
            help="Vouch for a name, or for names like 'my_pkg.*'; repeatable.",
            show_default=False,
        ),
    ] = (),  # type: ignore[assignment]
    fail_on: Annotated[
        FailOn, Option("--fail-on", help="The mildest verdict that makes the exit code 1.")
    ] = FailOn.UNKNOWN,
    output: OutputOptions,
) -> None:
    """Judge whether loading a file could run code: CLEAN, UNKNOWN or DANGEROUS.

    CLEAN: every name that a pickle in the file would import is one that torch's weights_only
    allows or fits --allow; every record that parses as a pickle was walked to its end, with nothing
    behind it; and the archive says one thing to all readers. DANGEROUS: a name that runs commands
    or code, or reaches files or the network. UNKNOWN: what nobody vouches for, or can't be judged.

    The limits: nothing in the file is run, so what an allowed name does with its arguments isn't
    known; the programs in TorchScript and .pt2 files aren't judged, nor are faults of torch. Load
    what is CLEAN with weights_only=True all the same.

    Examples:
        pttool ckpt scan downloaded.pt
        pttool ckpt scan *.ckpt --allow 'omegaconf.*' --fail-on dangerous
        find . -name '*.bin' -print0 | pttool ckpt scan --files-from - -0 --ndjson
    """
    paths = listed.with_listed(files)
    destination = output.choose(inputs=paths)
    from pttool.core.ckpt.scan import scan as scan_files

    emit("ckpt scan", scan_files(paths, allow=allow, fail_on=fail_on.value), destination)


def verify(
    files: Files = None, *, listed: ListOptions, all: All = False, output: OutputOptions
) -> None:
    """Check the checksums and sizes of records, and name the tensors that are damaged.

    torch.load itself checks neither. Legacy files, safetensors and pickles have no checksums;
    of those the sizes are compared.

    Examples:
        pttool ckpt verify model.pt
        pttool ckpt verify runs/*.pt --json | jq '.items[] | select(.status != "ok")'
    """
    paths = listed.with_listed(files)
    destination = output.choose(inputs=paths)
    from pttool.core.ckpt.verify import only_damaged
    from pttool.core.ckpt.verify import verify as verify_files

    report = verify_files(paths)
    is_short = destination.is_table and not all
    emit("ckpt verify", only_damaged(report) if is_short else report, destination)


def diff(
    a: Annotated[Path, Argument(metavar="FILE", readable=False, help="A checkpoint.")],
    b: Annotated[Path, Argument(metavar="FILE", readable=False, help="Another, of any format.")],
    *,
    values: Annotated[
        bool, Option("--values", help="Read the elements of tensors, and compare them too.")
    ] = False,
    key_a: Annotated[
        str | None,
        Option("--key-a", metavar="KEY", help="Dotted key in the first.", show_default=False),
    ] = None,
    key_b: Annotated[
        str | None,
        Option("--key-b", metavar="KEY", help="Dotted key in the second.", show_default=False),
    ] = None,
    filter: Filter = None,
    all: Annotated[bool, Option("--all", help="List what is equal too.")] = False,
    output: OutputOptions,
) -> None:
    """Tell how two checkpoints differ: keys, shapes, types, values. The exit code is 1 if they do.

    Compared by dotted names, nested or not; the order of keys is no difference. Where just one is
    a plain state dict, it is compared with the weights of the other.

    Examples:
        pttool ckpt diff old.pt new.pt
        pttool ckpt diff epoch1.pt epoch2.pt --values --filter 'state_dict.*'
        pttool ckpt diff model.pt model.safetensors --values --json | jq .summary.max_abs_diff
    """
    destination = output.choose(inputs=[a, b])
    from pttool.core.ckpt.diff import diff as compare

    report = compare(a, b, values=values, key_a=key_a, key_b=key_b, pattern=filter, every=all)
    emit("ckpt diff", report, destination)


def match(
    file: File,
    model: Model,
    *,
    key: Key = None,
    apply_prefix: Annotated[
        bool, Option("--apply-prefix", help="Report as if the suggested prefix were changed.")
    ] = False,
    all: All = False,
    build: BuildOptions,
    output: OutputOptions,
) -> None:
    """Tell which weights of a checkpoint a model would load, and which prefix is in the way.

    Missing and unexpected are what load_state_dict(strict=True) calls so. The exit code is 1
    unless all match.

    Examples:
        pttool ckpt match resnet18.pth resnet18
        pttool ckpt match train.ckpt model.py:Net --kw classes=10 --key ema
    """
    destination = output.choose(inputs=[file])
    from pttool.core.ckpt.match import match as match_weights
    from pttool.core.ckpt.match import only_unmatched

    resolved = build.resolve(model)
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in resolved.module.state_dict().items()
        if hasattr(tensor, "shape")  # an extra state has none
    }
    report = match_weights(file, shapes, model, key=key, apply_prefix=apply_prefix)
    is_short = destination.is_table and not all
    emit("ckpt match", only_unmatched(report) if is_short else report, destination)
