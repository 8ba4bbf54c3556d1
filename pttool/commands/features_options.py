"""The options of `pttool features`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pttool.core.features.types import Format, Pool
from pttool.errors import UsageError
from pttool.options import ListOptions
from pttool.output import keep_stdout

if TYPE_CHECKING:
    from pttool.core.features.batches import Reading
    from pttool.core.features.requests import ModelRequest, Running, Target

LARGEST_SEED = 2**63 - 1

Pictures = Annotated[
    list[Path] | None,
    Argument(
        metavar="PATH...",
        readable=False,
        help="Pictures, folders of them, or - for a list on standard input.",
        show_default=False,
    ),
]
Layers = Annotated[
    list[str],
    Option(
        "-l",
        "--layer",
        metavar="NAME,...",
        help="Layers to take: names, globs, NAME:CALL, NAME[KEY], or as in papers (relu5_3); "
        "repeatable.",
        show_default=False,
    ),
]
Output = Annotated[
    Path, Argument(metavar="OUT", readable=False, help="The folder that extract -o has written to.")
]
JoinAs = Annotated[
    Format, Option("--format", help="A file for each layer (npy), or one for all of them.")
]
Root = Annotated[
    Path | None,
    Option(
        "--root",
        metavar="DIR",
        help="Give ids relative to DIR; by default to the folder given or, for several paths, to "
        "the working folder or the one that all are in.",
        show_default=False,
    ),
]


class Type(StrEnum):
    """The floating-point type that a model runs in."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"


class RunOn(StrEnum):
    """Where a model runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Alpha(StrEnum):
    """What transparent pixels become."""

    WHITE = "white"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which model, with which values."""

    weights: Annotated[
        str,
        Option(
            "--weights",
            metavar="DEFAULT|TAG|FILE|none",
            help="Published weights, a file of them, or random ones.",
        ),
    ] = "DEFAULT"
    seed: Annotated[
        int, Option("--seed", metavar="N", min=0, max=LARGEST_SEED, help="Seed of random weights.")
    ] = 0
    kw: Annotated[
        list[str],
        Option(
            "--kw",
            metavar="NAME=VALUE",
            help="An argument for the class or function, as a Python literal; repeatable.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    trust_pickle: Annotated[
        bool,
        Option("--trust-pickle", help="Load a whole pickled model, which can run any code."),
    ] = False
    imagenet_val: Annotated[
        bool,
        Option(
            "--imagenet-val",
            help="Resize to 256, crop 224, normalize, instead of what the weights came with.",
        ),
    ] = False

    def request(self, model: str) -> "ModelRequest":
        """Return what MODEL is; raises UsageError for a word that can't name one."""
        from pttool.core.model.spec import parse_keywords, parse_model

        spec, keywords = parse_model(model), parse_keywords(self.kw)
        keep_stdout()  # for the data: the model's own code may print at any time
        from pttool.core.features.requests import ModelRequest

        return ModelRequest(
            spec, model, keywords, self.weights, self.seed, self.imagenet_val, self.trust_pickle
        )


@dataclass(frozen=True, slots=True)
class RunningOptions:
    """How the model runs. Nothing that changes bits is on by default."""

    pool: Annotated[
        Pool, Option("--pool", help="Keep the mean over space or tokens, a flat row, or token 0.")
    ] = Pool.NONE
    dtype: Annotated[Type, Option("--dtype", help="The type that the model runs in.")] = Type.F32
    amp: Annotated[bool, Option("--amp", help="Run under autocast.")] = False
    channels_last: Annotated[
        bool, Option("--channels-last", help="Lay pictures out as N,H,W,C in memory.")
    ] = False
    compile: Annotated[bool, Option("--compile", help="Run through torch.compile.")] = False
    device: Annotated[
        RunOn, Option("--device", help="Where to run; auto is CUDA where there is a GPU.")
    ] = RunOn.AUTO
    batch_size: Annotated[
        int, Option("-b", "--batch-size", metavar="N", min=1, help="Pictures in a batch.")
    ] = 32
    threads: Annotated[
        int, Option("--threads", metavar="N", min=1, help="Threads of the model in each process.")
    ] = 1

    def running(self) -> "Running":
        """Return how the model runs."""
        from pttool.core.features.requests import Running

        names = {Type.F32: "float32", Type.F16: "float16", Type.BF16: "bfloat16"}
        return Running(
            pool=self.pool,
            dtype=names[self.dtype],
            amp=self.amp,
            channels_last=self.channels_last,
            compiled=self.compile,
            device=self.device.value,
            batch_size=self.batch_size,
            threads=self.threads,
        )


@dataclass(frozen=True, slots=True)
class PictureOptions(ListOptions):
    """Which pictures there are, and how files become pictures."""

    frames: Annotated[
        int | None,
        Option(
            "--frames",
            metavar="K",
            min=1,
            help="Take K frames of each video, as `video sample-tsn` does.",
            show_default=False,
        ),
    ] = None
    no_exif: Annotated[
        bool, Option("--no-exif", help="Leave pictures as stored, not turned as EXIF says.")
    ] = False
    alpha: Annotated[
        Alpha, Option("--alpha", help="Transparent pixels: over white, or as the colour stored.")
    ] = Alpha.WHITE

    def paths(self, paths: list[Path] | None) -> list[Path]:
        """Return the paths given and listed; raises UsageError for none."""
        given = [path for path in paths or [] if str(path) != "-"]
        if len(given) == len(paths or []):
            return self.with_listed(given)
        if self.files_from is not None:
            raise UsageError("two lists: - and --files-from", "give one of them")
        return ListOptions(Path("-"), self.null).with_listed(given)

    def reading(self) -> "Reading":
        """Return how files become pictures."""
        from pttool.core.features.batches import Reading

        return Reading(exif=not self.no_exif, alpha=self.alpha.value, frames=self.frames)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Where features go."""

    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="DIR",
            help="The folder to write to, or to go on with.",
            show_default=False,
        ),
    ] = None
    part_size: Annotated[
        int | None,
        Option(
            "--part-size",
            metavar="N",
            min=1,
            help="Pictures in a part; by default some batches.",
            show_default=False,
        ),
    ] = None
    overwrite: Annotated[
        bool, Option("--overwrite", help="Begin anew where DIR has another configuration.")
    ] = False
    merge: Annotated[bool, Option("--merge", help="Join the parts of each layer: LAYER.npy.")] = (
        False
    )
    format: Annotated[
        Format | None,
        Option("--format", help="Join the parts into files of this kind.", show_default=False),
    ] = None

    def target(self) -> "Target":
        """Return where features go; raises UsageError for nowhere."""
        if self.output is None:
            raise UsageError("no output is given", "-o DIR says where to write")
        from pttool.core.features.requests import Target

        joined = self.format or (Format.NPY if self.merge else None)
        return Target(self.output, self.overwrite, joined)
