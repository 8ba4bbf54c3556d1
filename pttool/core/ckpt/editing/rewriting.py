"""Save a file with some of its bytes changed: patched where they keep their length, else anew.

`target` is where to; the file's own path means in place.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from pttool.core.ckpt.files.copying import copy_range
from pttool.core.ckpt.files.patching import Patch, apply_in_place, patched_copy
from pttool.core.ckpt.files.payload import opened
from pttool.core.ckpt.pickles.edits import Edit
from pttool.core.ckpt.zips.directory import Directory
from pttool.core.ckpt.zips.layout import Entry
from pttool.core.ckpt.zips.writer import ZipWriter
from pttool.core.files import written


def patched(source: Path, target: Path, patches: Sequence[Patch]) -> None:
    """Save with patches. Raises as patched_copy and apply_in_place do."""
    if target != source:
        patched_copy(source, target, patches)
    elif patches:
        apply_in_place(source, patches)


def spliced(source: Path, target: Path, edits: Sequence[Edit]) -> None:
    """Save with edits at positions in the file, which may move what follows them."""
    if all(len(edit.content) == edit.stop - edit.start for edit in edits):
        patched(source, target, [Patch(edit.start, edit.content) for edit in edits])
        return
    with opened(source) as reader, written(target, source) as stream:
        position = end = 0
        rest = Edit(os.fstat(reader).st_size, 0, b"")
        for edit in (*edits, rest):
            count = edit.start - position
            copy_range(reader, stream.fileno(), position, end, count, name=str(source))
            os.lseek(stream.fileno(), end + count, os.SEEK_SET)
            os.write(stream.fileno(), edit.content)
            end += count + len(edit.content)
            position = edit.stop


def rezipped(
    directory: Directory, entry: Entry, payload: bytes, alignment: int, target: Path
) -> None:
    """Save a zip with another payload for one record; the others are copied as they are.

    Torch computes offsets from the `alignment` that the file was written with.
    """
    with written(target, directory.path) as stream:
        writer = ZipWriter(stream, alignment)
        for other in directory.entries:
            if other is entry:
                writer.add(entry.name, payload)
            else:
                writer.copy(directory.record(other), other.name)
        writer.close()
