"""A pickle that torch.save did not write. Its tensors, if any, are whole torch files inside it.

Source: torch.storage.TypedStorage.__reduce__, which pickles what torch.save(..., legacy) writes.
"""

import mmap
from pathlib import Path

from pttool.core.ckpt.containers.legacy import read_legacy
from pttool.core.ckpt.files.payload import mapped, opened
from pttool.core.ckpt.pickles.nodes import Span
from pttool.core.ckpt.pickles.pickled import walk
from pttool.core.ckpt.pickles.spans import bytes_of, pieces
from pttool.core.ckpt.pickles.walker import Buffer
from pttool.core.ckpt.tensors.leaves import Leaves
from pttool.core.ckpt.tensors.storages import Storages, Typed
from pttool.core.ckpt.types import Checkpoint, Format, Pickled, Record, Tensor, Value
from pttool.errors import InputError

LONGEST_ENCODED = 1 << 26


def open_raw_pickle(path: Path) -> Checkpoint:
    """Return what a pickle holds. Raises InputError for a broken or cut one."""
    with opened(path) as file, mapped(path) as whole:
        record = Record("pickle", path, 0, len(whole), len(whole))
        outer = walk(whole, record)
        inside = _Inside(whole, path, file)
        leaves = Leaves(outer.root, Storages(lambda key: None, inside.open))
        found = list(leaves)
    return Checkpoint(
        path=path,
        format=Format.PICKLE,
        format_version=str(outer.protocol),
        root=outer.root,
        tensors=tuple(leaf for leaf in found if isinstance(leaf, Tensor)),
        values=tuple(leaf for leaf in found if isinstance(leaf, Value)),
        leaves=tuple(found),
        records=(record,),
        pickles=(outer, *inside.pickles),
        warnings=tuple(leaves.warnings),
    )


class _Inside:
    """Opens torch files inside of a pickle, each once, and keeps the pickles seen in them."""

    def __init__(self, whole: mmap.mmap, path: Path, descriptor: int) -> None:
        self.whole = whole
        self.path = path
        self.descriptor = descriptor
        self.known: dict[Span | bytes, Typed | None] = {}
        self.pickles: list[Pickled] = []

    def open(self, content: bytes | Span) -> Typed | None:
        """Return the storage that the bytes of a torch file hold, or None for other bytes."""
        if content not in self.known:
            self.known[content] = self._opened(content)
        return self.known[content]

    def _opened(self, content: bytes | Span) -> Typed | None:
        buffer: Buffer = self.whole
        start, descriptor = 0, None
        if isinstance(content, bytes):
            buffer = content
        elif content.encoding is None:
            start, descriptor = content.start, self.descriptor
        elif content.stop - content.start <= LONGEST_ENCODED:
            text = pieces(self.whole, content.start, content.stop)
            buffer = b"".join(bytes_of(text, content.encoding))
        try:
            legacy = read_legacy(buffer, self.path, start, descriptor)
        except InputError:
            return None
        self.pickles.extend(legacy.pickles)
        # Bytes that were encoded as a text lie nowhere in the file as they are.
        find = legacy.records.get if descriptor is not None else lambda key: None
        return Storages(find).typed(legacy.object.root)
