"""`pttool video`: facts and frames of videos, by what a full decode would give."""

from pathlib import Path
from typing import Annotated

from typer import Option

from pttool.app import noun, verb
from pttool.commands.progress import counting
from pttool.commands.video_options import (
    NoRotate,
    ProductOptions,
    SamplingOptions,
    SheetOptions,
    Video,
    Videos,
)
from pttool.options import FormatOptions, ListOptions, OutputOptions
from pttool.output import emit

app = noun("Look into videos, and take from them the frames that a full decode would give.")


@verb(app)
def info(
    paths: Videos = None,
    *,
    listed: ListOptions,
    fast: Annotated[bool, Option("--fast", help="Read the header alone.")] = False,
    decode: Annotated[bool, Option("--decode", help="Decode every frame: the full truth.")] = False,
    output: OutputOptions,
) -> None:
    """Tell codec, size, frame rate, number of frames and keyframes of videos, and what is wrong.

    Reads all packets and decodes almost none: `frames` is the number of pictures that a full decode
    gives. Where the header claims another, both are told.

    Examples:
        pttool video info clip.mp4
        pttool video info *.mp4 --json | jq '.items[] | select(.is_vfr)'
        find . -name '*.webm' -print0 | pttool video info --files-from - -0 --csv
    """
    files = listed.with_listed(paths)
    destination = output.choose(inputs=files)
    from pttool.core.video.info import info as tell

    emit("video info", tell(files, fast=fast, decode=decode), destination)


@verb(app)
def sample_tsn(
    paths: Videos = None,
    *,
    listed: ListOptions,
    sampled: SamplingOptions,
    num_frames: Annotated[
        int | None,
        Option(
            "--num-frames",
            metavar="N",
            min=0,
            help="Open no file: only choose among N frames.",
            show_default=False,
        ),
    ] = None,
    written: ProductOptions,
    root: Annotated[
        Path | None,
        Option(
            "--root",
            metavar="DIR",
            help="Name videos relative to DIR; by default to the working folder or, if one is "
            "elsewhere, to the folder that all are in.",
            show_default=False,
        ),
    ] = None,
    no_rotate: NoRotate = False,
    strict: Annotated[
        bool, Option("--strict", help="Refuse a video with fewer frames than it claims.")
    ] = False,
    jobs: Annotated[
        int, Option("-j", "--jobs", metavar="N", min=1, help="Videos done at the same time.")
    ] = 1,
    output: FormatOptions,
) -> None:
    """Take K frames that stand for a video, as temporal segment networks do.

    Index i is the i-th picture of a full decode, from 0. The middles are exact integers; a random
    draw depends on the seed and the video's relative path alone, so neither order nor -j nor
    --resume changes it. Frames go to DIR/RELATIVE/STEM/img_00001.jpg and so on, or to
    DIR/RELATIVE/STEM.npz. Without -o, the indices are told.

    Examples:
        pttool video sample-tsn clip.mp4 -k 8 -o frames
        pttool video sample-tsn --files-from train.txt --mode train -o frames -j 4 --resume
        pttool video sample-tsn clip.mp4 -k 25 --format npz --short-side 256 -o arrays
        pttool video sample-tsn --num-frames 300 -k 8 --compat mmaction2
    """
    is_given = paths or listed.files_from is not None or num_frames is None
    files = listed.with_listed(paths) if is_given else []
    destination = output.to_stdout()
    from pttool.core.video.sample_tsn import sample_tsn as sample

    with counting("videos") as progress:
        report = sample(
            files,
            sampled.sampling(),
            written.products(num_frames=num_frames),
            frames=num_frames,
            root=root,
            rotate=not no_rotate,
            strict=strict,
            processes=jobs,
            progress=progress,
        )
    emit("video sample-tsn", report, destination)


@verb(app)
def sheet(
    path: Video,
    *,
    k: Annotated[int, Option("-k", "--segments", metavar="K", min=1, help="Frames shown.")] = 16,
    columns: Annotated[
        int | None,
        Option("--columns", metavar="N", min=1, help="Frames in a row.", show_default=False),
    ] = None,
    no_rotate: NoRotate = False,
    drawn: SheetOptions,
    output: FormatOptions,
) -> None:
    """Draw frames of a video on one picture, with their indices and times, to look at.

    Examples:
        pttool video sheet clip.mp4 -o clip.jpg
        pttool video sheet clip.mp4 -k 30 --columns 6 -o clip.png
    """
    destination, out = output.to_stdout(), drawn.target(path)
    from pttool.core.video.sheet import sheet as draw

    report = draw(path, out, segments=k, columns=columns, rotate=not no_rotate)
    emit("video sheet", report, destination)
