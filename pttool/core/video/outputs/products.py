"""What a sampling leaves on disk: frames, a contact sheet, a manifest; refused before any work."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pttool.core.files import check_writable, explained, written
from pttool.core.video.opencv import load_cv2
from pttool.core.video.outputs.contact_sheet import MOST_TILES, draw
from pttool.core.video.outputs.journal import claimed
from pttool.core.video.outputs.manifest import write_manifest
from pttool.core.video.outputs.pixels import encoded
from pttool.core.video.outputs.saving import Saving, pictures_in
from pttool.core.video.sampling.one_video import Outcome, Task
from pttool.errors import UnavailableError, UsageError

MOST_ON_A_SHEET = 50
SHEET_SUFFIXES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True, slots=True)
class Products:
    """What is written besides the report.

    `resume` keeps frames that are complete and made the same way; `force` replaces whatever is
    there.
    """

    saving: Saving | None = None
    sheet: Path | None = None
    manifest: Path | None = None
    resume: bool = False
    force: bool = False

    @property
    def replaces(self) -> bool:
        """Whether what is there may be replaced."""
        return self.resume or self.force


def check_products(tasks: Sequence[Task], products: Products) -> None:
    """Refuse, before any work is done, what can't be written or must not be replaced.

    Raises UsageError for what is in the way, UnavailableError for a missing permission or library.
    """
    inputs = [task.source.path for task in tasks]
    if products.saving is not None:
        _check_folder(products.saving.folder)
        ours = claimed(products.saving.folder) if products.resume else set()
        for task in tasks:
            _check_frames(task, products.saving, replaces=products.force or task.output in ours)
    for path in (products.manifest, products.sheet):
        if path is not None and not _comes_with_frames(path, products.saving):
            check_writable(path, force=products.replaces, inputs=inputs)
    if products.sheet is not None:
        _check_sheet(products.sheet, tasks, products.manifest)
    _load_libraries(products)


def write_products(outcomes: Sequence[Outcome], products: Products) -> None:
    """Write the manifest and the contact sheet; raises UnavailableError where they can't be."""
    if products.manifest is not None:
        _make_parent(products.manifest)
        write_manifest(products.manifest, [outcome.entry for outcome in outcomes])
    bands = [(outcome.entry["file"], outcome.tiles) for outcome in outcomes if outcome.tiles]
    if products.sheet is not None and bands:
        _make_parent(products.sheet)
        suffix = ".png" if products.sheet.suffix.lower() == ".png" else ".jpg"
        with written(products.sheet) as stream:
            stream.write(encoded(draw(bands), suffix))


def _check_folder(folder: Path) -> None:
    """Refuse a folder that is not there and can't be made, or can't be written."""
    found = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not found.is_dir():
        raise UsageError(f"{found}: is a file", "-o takes a folder")
    if not os.access(found, os.W_OK | os.X_OK):
        raise UnavailableError(f"{folder}: no permission to write in {found}", "write elsewhere")


def _check_frames(task: Task, saving: Saving, *, replaces: bool) -> None:
    target = saving.folder / (task.output or "")
    if saving.has_pictures:
        if target.exists() and not target.is_dir():
            raise UsageError(f"{target}: is a file", "pictures go into a folder of that name")
        source = task.source.path
        images = source if source.is_dir() else source.parent
        if not source.is_file() and target.exists() and target.samefile(images):
            raise UsageError(f"{target}: is an input", "write to another folder")
        in_the_way = bool(pictures_in(target))
    else:
        if target.is_dir():
            raise UsageError(f"{target}: is a folder", "an array goes into a file of that name")
        in_the_way = target.exists()
    if in_the_way and not replaces:
        raise UsageError(
            f"{target}: already exists",
            "--resume goes on with what it began, --force replaces what is there",
        )


def _check_sheet(sheet: Path, tasks: Sequence[Task], manifest: Path | None) -> None:
    if sheet.suffix.lower() not in SHEET_SUFFIXES:
        raise UsageError(f"{sheet}: is no picture", "end it in .jpg or .png")
    if manifest is not None and sheet.resolve() == manifest.resolve():
        raise UsageError(f"{sheet}: is the manifest and the sheet", "give each its own name")
    if len(tasks) > MOST_ON_A_SHEET:
        raise UsageError(
            f"--sheet shows {MOST_ON_A_SHEET} videos, not {len(tasks)}",
            "name fewer, or leave out --sheet",
        )
    tiles = sum(task.sampling.count for task in tasks)
    if tiles > MOST_TILES:
        raise UsageError(
            f"--sheet shows {MOST_TILES} frames, not {tiles}",
            "take fewer, or leave out --sheet",
        )


def _comes_with_frames(path: Path, saving: Saving | None) -> bool:
    """Whether a file's folder is made together with the frames."""
    if saving is None or path.absolute().parent.exists():
        return False
    return path.absolute().is_relative_to(saving.folder.absolute())


def _make_parent(path: Path) -> None:
    with explained(path):
        path.absolute().parent.mkdir(parents=True, exist_ok=True)


def _load_libraries(products: Products) -> None:
    """Import what workers need before they fork, so that what is broken is said at once."""
    saving = products.saving
    if products.sheet is not None or (
        saving is not None and (saving.has_pictures or saving.short_side is not None)
    ):
        load_cv2()
    if saving is not None and saving.format == "pt":
        import torch  # noqa: F401
