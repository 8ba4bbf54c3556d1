"""The options of `pttool video`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pttool.errors import UsageError
from pttool.options import Force

if TYPE_CHECKING:
    from pttool.core.video.outputs.products import Products
    from pttool.core.video.tsn import Sampling

LARGEST_SEED = 2**32 - 1

# Typer's own check of permissions would end the whole list at one bad file.
Videos = Annotated[
    list[Path] | None,
    Argument(
        metavar="PATH...",
        readable=False,
        help="Videos, folders of images, or patterns as img_%05d.jpg.",
    ),
]
Video = Annotated[
    Path,
    Argument(metavar="PATH", readable=False, help="A video, a folder of images, or a pattern."),
]
NoRotate = Annotated[
    bool, Option("--no-rotate", help="Leave pictures as coded, not turned as the file says.")
]


class Mode(StrEnum):
    """How a frame is taken from each segment."""

    TEST = "test"
    TRAIN = "train"
    UNIFORM = "uniform"


class OutOfBounds(StrEnum):
    """What a clip that is longer than the video does."""

    CLAMP = "clamp"
    LOOP = "loop"
    ERROR = "error"


class Compat(StrEnum):
    """Whose indices are taken, faults included."""

    MMACTION2 = "mmaction2"
    TSN_PYTORCH = "tsn-pytorch"


class Format(StrEnum):
    """What frames are written as."""

    JPG = "jpg"
    PNG = "png"
    NPY = "npy"
    NPZ = "npz"
    PT = "pt"


class NumberedBy(StrEnum):
    """What the number in a picture's name is."""

    ORDER = "order"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Which frames are taken."""

    k: Annotated[int, Option("-k", "--segments", metavar="K", min=1, help="Segments.")] = 8
    mode: Annotated[
        Mode,
        Option("--mode", help="The middle of each segment, a drawn frame, or mmaction2's uniform."),
    ] = Mode.TEST
    seed: Annotated[
        int, Option("--seed", metavar="N", min=0, max=LARGEST_SEED, help="Seed of --mode train.")
    ] = 0
    clip_len: Annotated[
        int, Option("--clip-len", metavar="L", min=1, help="Frames taken from each segment.")
    ] = 1
    frame_interval: Annotated[
        int, Option("--frame-interval", metavar="D", min=1, help="Step between a clip's frames.")
    ] = 1
    oob: Annotated[
        OutOfBounds | None,
        Option(
            "--oob",
            help="A clip longer than the video: repeat the last frame (the default), start again "
            "(mmaction2's), or fail.",
            show_default=False,
        ),
    ] = None
    twice_sample: Annotated[
        bool, Option("--twice-sample", help="Add the segment starts to the middles.")
    ] = False
    compat: Annotated[
        Compat | None,
        Option(
            "--compat",
            help="Take the very indices of mmaction2 1.2.0 or tsn-pytorch, faults included.",
            show_default=False,
        ),
    ] = None

    def sampling(self) -> "Sampling":
        """Return how frames are chosen; raises UsageError for what doesn't go together."""
        from pttool.core.video.tsn import Sampling

        return Sampling(
            segments=self.k,
            mode=self.mode.value,
            clip_len=self.clip_len,
            frame_interval=self.frame_interval,
            out_of_bounds=None if self.oob is None else self.oob.value,
            twice=self.twice_sample,
            compat=None if self.compat is None else self.compat.value,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True)
class ProductOptions:
    """What is written."""

    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="DIR", help="Write frames below DIR.", show_default=False),
    ] = None
    indices_only: Annotated[
        bool, Option("--indices-only", help="Write no frames, as without -o.")
    ] = False
    format: Annotated[
        Format, Option("--format", help="Pictures, or one array (T, H, W, C) a video.")
    ] = Format.JPG
    quality: Annotated[
        int, Option("--quality", metavar="Q", min=1, max=100, help="Of JPEG, up to 100.")
    ] = 95
    short_side: Annotated[
        int | None,
        Option(
            "--short-side",
            metavar="PIXELS",
            min=1,
            max=16384,
            help="Resize so that the shorter side has PIXELS.",
            show_default=False,
        ),
    ] = None
    name: Annotated[
        NumberedBy, Option("--name", help="Number pictures from 1 in order, or by index from 0.")
    ] = NumberedBy.ORDER
    sheet: Annotated[
        Path | None,
        Option(
            "--sheet",
            metavar="FILE",
            help="Draw the frames on one picture, .jpg or .png.",
            show_default=False,
        ),
    ] = None
    manifest: Annotated[
        Path | None,
        Option(
            "--manifest",
            metavar="FILE",
            help="Write JSON lines: what was taken of each video, or why nothing.",
            show_default=False,
        ),
    ] = None
    resume: Annotated[
        bool,
        Option("--resume", help="Redo only what is incomplete or was made with other options."),
    ] = False
    force: Annotated[bool, Option("--force", help="Replace frames and files that exist.")] = False

    def products(self, *, num_frames: int | None) -> "Products":
        """Return what is to be written; raises UsageError for what doesn't go together."""
        if self.output is not None and (self.indices_only or num_frames is not None):
            option = "--indices-only" if self.indices_only else "--num-frames"
            raise UsageError(f"{option} with -o", f"{option} writes no frames: leave out one")
        if self.sheet is not None and num_frames is not None:
            raise UsageError("--num-frames with --sheet", "there are no pictures to show")
        if self.resume and self.output is None:
            raise UsageError("--resume without -o DIR", "it goes on with the frames in DIR")
        from pttool.core.video.outputs.products import Products
        from pttool.core.video.outputs.saving import Saving

        saving = None
        if self.output is not None:
            saving = Saving(
                self.output, self.format.value, self.quality, self.short_side, self.name.value
            )
        return Products(saving, self.sheet, self.manifest, self.resume, self.force)


@dataclass(frozen=True, slots=True)
class SheetOptions:
    """Where a contact sheet goes."""

    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The picture to write, .jpg or .png.",
            show_default=False,
        ),
    ] = None
    force: Force = False

    def target(self, path: Path) -> Path:
        """Return the picture's path; raises UsageError for none, or one that can't be written."""
        from pttool.core.video.outputs.products import SHEET_SUFFIXES
        from pttool.output import choose_text_output

        out = choose_text_output(self.output, SHEET_SUFFIXES, force=self.force, inputs=[path])
        if out is None:
            raise UsageError("no output is given", "-o FILE says where to write")
        return out
