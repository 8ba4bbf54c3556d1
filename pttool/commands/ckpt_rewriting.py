"""The verbs of `pttool ckpt` that change a few bytes of a checkpoint and keep all others."""

from typing import Annotated

from typer import Option

from pttool.commands.ckpt_options import File, RewriteOptions
from pttool.options import FormatOptions
from pttool.output import emit, note


def convert_cpu(
    file: File,
    *,
    rewrite: RewriteOptions,
    device_objects: Annotated[
        bool, Option("--device-objects", help="Change torch.device objects too.")
    ] = False,
    output: FormatOptions,
) -> None:
    """Make a checkpoint load without the device that it was saved on.

    The tags of storages become cpu; texts such as args.device == "cuda:0" stay as they are, and
    so does every other byte. Classes that aren't installed don't matter.

    Examples:
        pttool ckpt convert-cpu gpu.pt -o cpu.pt
        pttool ckpt convert-cpu gpu.pt --in-place
        pttool ckpt convert-cpu gpu.pt --dry-run --json
    """
    destination = output.to_stdout()
    target = rewrite.target(file)
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.convert_cpu import convert_cpu as convert

    with readable(file, may_change=rewrite.in_place, say=note) as path:
        report = convert(path, target, device_objects=device_objects, dry_run=rewrite.dry_run)
    emit("ckpt convert-cpu", report, destination)


def strip_dataparallel(
    file: File,
    *,
    rewrite: RewriteOptions,
    prefix: Annotated[
        str | None,
        Option("--prefix", metavar="P", help="Strip P instead of module.", show_default=False),
    ] = None,
    add_prefix: Annotated[
        str | None,
        Option(
            "--add-prefix",
            metavar="P",
            help="Put P before the names; strips none without --prefix.",
            show_default=False,
        ),
    ] = None,
    anywhere: Annotated[
        bool, Option("--anywhere", help="Strip module. inside of names too: features.module.0.")
    ] = False,
    partial: Annotated[
        bool, Option("--partial", help="Strip the names that have the prefix where others haven't.")
    ] = False,
    output: FormatOptions,
) -> None:
    """Strip what DataParallel, DDP, FSDP and torch.compile put into the names of weights.

    That is module. at the start, and _orig_mod, _fsdp_wrapped_module and
    _checkpoint_wrapped_module anywhere; in all state dicts of the file, with their _metadata, and
    where an optimizer names parameters. Every other byte stays as it is.

    Examples:
        pttool ckpt strip-dataparallel ddp.pt -o plain.pt
        pttool ckpt strip-dataparallel lightning.ckpt --prefix model. -o plain.ckpt
        pttool ckpt strip-dataparallel plain.pt --add-prefix backbone. -o backbone.pt
    """
    destination = output.to_stdout()
    target = rewrite.target(file)
    from pttool.core.ckpt.batch import readable
    from pttool.core.ckpt.editing.renaming import Renaming
    from pttool.core.ckpt.strip_dataparallel import strip_dataparallel as strip

    renaming = Renaming.of(prefix, add_prefix, anywhere=anywhere, partial=partial)
    with readable(file, may_change=rewrite.in_place, say=note) as path:
        report = strip(path, target, renaming, dry_run=rewrite.dry_run)
    emit("ckpt strip-dataparallel", report, destination)
