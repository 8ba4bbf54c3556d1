"""The bytes of what a walk has left where it lies."""

import codecs
from collections.abc import Iterable, Iterator

from pttool.core.ckpt.pickles.walker import Buffer

BLOCK_BYTES = 1 << 20


def pieces(buffer: Buffer, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes between two positions, a megabyte at a time."""
    for at in range(start, stop, BLOCK_BYTES):
        yield buffer[at : min(at + BLOCK_BYTES, stop)]


def bytes_of(text: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the bytes that an encoded text stands for, one for each of its characters.

    Protocols below 3 have bytes written so. What is no such text comes as question marks.
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in text:
        yield decoder.decode(block).encode("latin-1", "replace")
    yield decoder.decode(b"", final=True).encode("latin-1", "replace")
