"""Walk one pickle of a checkpoint, and note what it names, refers to and does with names."""

from pttool.core.ckpt.pickles.opcodes import HANDLERS
from pttool.core.ckpt.pickles.walker import Buffer, Walker
from pttool.core.ckpt.types import Pickled, Record

# What torch/_weights_only_unpickler.py understands.
WEIGHTS_ONLY_OPCODES = frozenset(b"c\x81Rbaesu(t\x85\x86\x87N\x89\x88)]}\x8fKMJGXUQhjqr\x8a\x80.")


def walk(buffer: Buffer, record: Record, *, start: int = 0) -> Pickled:
    """Return the pickle at `start`, walked. Raises InputError for a broken one."""
    return finished(Walker(buffer, start, f"{record.file}: {record.name}"), record)


def finished(walker: Walker, record: Record) -> Pickled:
    """Walk, and return what was seen on the way. Raises InputError for a broken pickle."""
    root = walker.walk()
    unsupported = [
        HANDLERS[code].__name__.strip("_").upper()
        for code in range(256)
        if walker.seen[code] and code not in WEIGHTS_ONLY_OPCODES
    ]
    return Pickled(
        record=record,
        root=root,
        start=walker.start,
        end=walker.position,
        protocol=walker.protocol,
        globals=tuple(dict.fromkeys(walker.globals)),
        persistent_ids=tuple(walker.persistent_ids),
        unsupported=tuple(unsupported),
        trailing_bytes=len(walker.buffer) - walker.position,
        uses=frozenset(walker.uses),
    )
