"""Options that commands share: the same name means the same everywhere."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from pttool.errors import UnavailableError, UsageError
from pttool.output import Format, Output, choose_output, keep_stdout

if TYPE_CHECKING:
    from collections.abc import Callable

    from pttool.core.model.resolve import Resolved
    from pttool.core.model.spec import InputSpec

    Resolve = Callable[..., Resolved]


class Device(StrEnum):
    """Where a model is built and run."""

    META = "meta"
    CPU = "cpu"
    CUDA = "cuda"


class Mode(StrEnum):
    """Which of nn.Module's two modes a model runs in."""

    EVAL = "eval"
    TRAIN = "train"


class DType(StrEnum):
    """The floating-point type of a model and its inputs."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT64 = "float64"


Model = Annotated[
    str,
    Argument(
        metavar="MODEL",
        help="A torchvision name, timm:NAME, FILE.py:ATTR or package.module:ATTR (a class, a "
        "function that returns a model, or a model), or a FILE.pt that torch saved.",
        show_default=False,
    ),
]

A_DAY_S = 86_400


def a_number(value: float | None) -> float | None:
    """Refuse NaN, which every range lets through: it is neither below nor above anything."""
    if value is not None and isnan(value):
        raise BadParameter("nan is not a number.")
    return value


Force = Annotated[bool, Option("--force", help="Replace FILE if it exists.")]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How MODEL is built."""

    kw: Annotated[
        list[str],
        Option(
            "--kw",
            metavar="NAME=VALUE",
            help="An argument for the class or function, as a Python literal; repeatable.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    weights: Annotated[
        str | None,
        Option(
            "--weights",
            metavar="ENTRY",
            help="Build as for this published entry (IMAGENET1K_V1, DEFAULT), without its values.",
            show_default=False,
        ),
    ] = None
    trust_pickle: Annotated[
        bool,
        Option("--trust-pickle", help="Load a whole pickled model, which can run any code."),
    ] = False
    device: Annotated[
        Device,
        Option("--device", help="Where to build and run it; meta takes no memory for weights."),
    ] = Device.META
    dtype: Annotated[
        DType | None,
        Option("--dtype", help="Floating-point type of the model.", show_default=False),
    ] = None

    def resolve(self, model: str) -> "Resolved":
        """Return the module that MODEL names, built as told."""
        from pttool.core.model.spec import parse_keywords, parse_model

        spec, keywords = parse_model(model), parse_keywords(self.kw)
        keep_stdout()  # for the data: the model's own code may print at any time
        # Models are counted as they are written; compiling them would be for nothing.
        os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")
        resolve = _import_resolve()
        return resolve(
            spec,
            keywords,
            name=model,
            weights=self.weights,
            device=self.device,
            dtype=self.dtype,
            trust_pickle=self.trust_pickle,
        )


def _import_resolve() -> "Resolve":
    """Import what needs torch. A broken installation fails in any way, a missing one in one."""
    try:
        from pttool.core.model.resolve import resolve
    except ModuleNotFoundError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UnavailableError(f"torch can't be imported: {reason}", "reinstall torch") from error
    return resolve


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What the model is called with."""

    input: Annotated[
        list[str],
        Option(
            "-i",
            "--input",
            metavar="[NAME:][DTYPE:]D1,D2,...",
            help="Shape of one input without the batch dimension; repeat it for several.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    batch: Annotated[
        int, Option("-b", "--batch", metavar="N", min=1, help="Batch size put before each shape.")
    ] = 1
    no_batch: Annotated[
        bool, Option("--no-batch", help="Take the shapes as they are, without a batch dimension.")
    ] = False

    def specs(self) -> list["InputSpec"]:
        """Return the inputs described; raises UsageError for one that makes no sense."""
        from pttool.core.model.spec import parse_input

        return [parse_input(text) for text in self.input]

    @property
    def batch_size(self) -> int | None:
        """The batch size, or None when the shapes stand as they are."""
        return None if self.no_batch else self.batch


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How the result is written to standard output."""

    json: Annotated[bool, Option("--json", help="Write one JSON document.")] = False
    ndjson: Annotated[bool, Option("--ndjson", help="Write one JSON object per row.")] = False
    csv: Annotated[bool, Option("--csv", help="Write the rows as CSV.")] = False
    tsv: Annotated[bool, Option("--tsv", help="Write the rows as TSV.")] = False
    no_header: Annotated[
        bool, Option("--no-header", help="Leave out the header, and the footer of a table.")
    ] = False

    @property
    def asked(self) -> list[Format]:
        """The formats asked for."""
        return [format for format in Format if getattr(self, format.value, False)]

    def to_stdout(self) -> Output:
        """Return the output asked for; raises UsageError for two formats at once."""
        return choose_output(self.asked, header=not self.no_header, path=None, force=False)


@dataclass(frozen=True, slots=True)
class OutputOptions(FormatOptions):
    """How the result is written, and where."""

    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE: .json, .ndjson, .csv, .tsv or .txt.",
            show_default=False,
        ),
    ] = None
    force: Force = False

    def choose(self, model: str = "", inputs: Sequence[Path] = ()) -> Output:
        """Return the output asked for; raises UsageError for two formats or a hopeless FILE.

        FILE may not be the one that MODEL names, nor one of the inputs, even with --force.
        """
        named = [Path(model), Path(model.rpartition(":")[0])] if model else []
        return choose_output(
            self.asked,
            header=not self.no_header,
            path=self.output,
            force=self.force,
            inputs=[path for path in (*named, *inputs) if path.is_file()],
        )


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list of files that is too long for a command line."""

    files_from: Annotated[
        Path | None,
        Option(
            "--files-from",
            metavar="FILE",
            help="Read names of files from FILE too, one a line; - is standard input.",
            show_default=False,
        ),
    ] = None
    null: Annotated[
        bool, Option("-0", "--null", help="Names in FILE end in NUL, as find -print0 writes them.")
    ] = False

    def with_listed(self, files: Sequence[Path] | None) -> list[Path]:
        """Return the files given and listed; raises UsageError for none, or an unreadable list."""
        listed = [] if self.files_from is None else _names_in(self.files_from, self.null)
        if not files and self.files_from is None:
            raise UsageError("no FILE is given", "name files, or give --files-from LIST")
        return [*(files or []), *map(Path, listed)]


def _names_in(path: Path, null: bool) -> list[str]:
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", "--files-from takes a readable file"
        ) from error
    if b"\0" in raw and not null:
        raise UsageError(f"{path}: its names end in NUL, not in a new line", "add -0")
    separator = b"\0" if null else b"\n"
    lines = (line if null else line.rstrip(b"\r") for line in raw.split(separator))
    names = [os.fsdecode(name) for name in lines if name]
    if not names:
        raise UsageError(f"{path}: names no files", "there is nothing to do")
    return names
