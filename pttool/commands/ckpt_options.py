"""The options of `pttool ckpt`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pttool.core.files import check_writable
from pttool.errors import UsageError
from pttool.options import Force

# Typer's own check of permissions would end the whole list at one bad file.
Files = Annotated[
    list[Path] | None,
    Argument(
        metavar="FILE...",
        readable=False,
        help="Checkpoints of any kind, or folders; - reads stdin.",
    ),
]
File = Annotated[
    Path,
    Argument(metavar="FILE", readable=False, help="A checkpoint; - reads standard input."),
]

Key = Annotated[
    str | None,
    Option(
        "--key",
        metavar="KEY",
        help="Take the weights under this dotted key, as ema.",
        show_default=False,
    ),
]
Filter = Annotated[
    str | None,
    Option(
        "--filter", metavar="GLOB", help="Only names that match, as 'layer1.*'.", show_default=False
    ),
]


class Sort(StrEnum):
    """What rows are sorted by."""

    KEY = "key"
    SIZE = "size"
    NUMEL = "numel"
    DTYPE = "dtype"


class FailOn(StrEnum):
    """Which verdicts make the exit code 1."""

    UNKNOWN = "unknown"
    DANGEROUS = "dangerous"


@dataclass(frozen=True, slots=True)
class NewFileOptions:
    """Where a new checkpoint goes."""

    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="OUT", help="The file to write.", show_default=False),
    ] = None
    force: Force = False

    def target(self, inputs: list[Path]) -> Path:
        """Return OUT; raises UsageError where there is none, or none that can be written."""
        if self.output is None:
            raise UsageError("no output is given", "-o OUT says where to write")
        check_output(self.output, force=self.force, inputs=inputs)
        return self.output


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Where a changed checkpoint goes."""

    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="OUT", help="The file to write.", show_default=False),
    ] = None
    in_place: Annotated[
        bool, Option("--in-place", help="Change FILE itself; a kill leaves the old or the new.")
    ] = False
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would change.")] = False
    force: Force = False

    def target(self, path: Path) -> Path | None:
        """Return OUT, or None for the file itself; raises UsageError for none or two of them."""
        if self.output is not None and self.in_place:
            raise UsageError("-o and --in-place at once", "give one of them")
        if self.in_place and str(path) == "-":
            raise UsageError("standard input can't be changed in place", "give -o OUT")
        if self.output is not None:
            check_output(self.output, force=self.force, inputs=[path])
        elif not (self.in_place or self.dry_run):
            raise UsageError(
                "no output is given", "-o OUT says where to write, --in-place changes FILE itself"
            )
        return self.output


SAFETENSORS = ".safetensors"
TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")


def check_suffix(out: Path, *, safetensors: bool) -> None:
    """Refuse a name that says another format than the verb writes; raises UsageError."""
    suffix = out.suffix.lower()
    if suffix == SAFETENSORS and not safetensors:
        raise UsageError(f"{out}: a file of torch is written", "to-safetensors writes the other")
    if suffix in TORCH_SUFFIXES and safetensors:
        raise UsageError(f"{out}: safetensors is written", f"end the name in {SAFETENSORS}")


def check_output(path: Path, *, force: bool, inputs: list[Path]) -> None:
    """Refuse an output that can't be written; raises as check_writable does."""
    if str(path) == "-":
        raise UsageError("-: standard output is for the report", "give -o a file")
    check_writable(path, force=force, inputs=inputs)


def output_folder(path: Path | None) -> Path:
    """Return the folder to make; raises UsageError for none, or one that can't be made."""
    if path is None:
        raise UsageError("no output is given", "-o DIR says which folder to make")
    if str(path) == "-":
        raise UsageError("-: standard output is for the report", "give -o a folder")
    from pttool.core.ckpt.files.new_folder import check_new_folder

    check_new_folder(path)
    return path
