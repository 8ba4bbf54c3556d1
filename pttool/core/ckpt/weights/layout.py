"""Which bytes of the input become which storages of a new file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pttool.core.ckpt.files.payload import blocks
from pttool.core.ckpt.tensors.dtypes import item_bytes
from pttool.core.ckpt.tensors.elements import count, extent, identity, raw_blocks, record_of
from pttool.core.ckpt.tensors.recognition import contiguous_stride
from pttool.core.ckpt.types import Record, Storage, Tensor
from pttool.core.ckpt.weights.casting import Casting
from pttool.errors import InputError

Named = tuple[str, Tensor]
# Where the bytes of a new storage come from: a record to be copied, or blocks made on the way.
Source = Record | Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The tensors of a new file and, by the key of each storage, where its bytes come from.

    The keys count from "0" in the order of first use, as torch.save has them; `sizes` are in bytes.
    """

    tensors: tuple[Named, ...]
    sources: Mapping[str, Source]
    sizes: Mapping[str, int]

    @property
    def size_bytes(self) -> int:
        """The bytes of all storages."""
        return sum(self.sizes.values())


@dataclass(slots=True)
class _Segment:
    """Bytes `start` to `stop` of a record, the tensors that lie there, and what they become.

    `alone` is the tensor that becomes contiguous, as nothing else lies between its elements.
    """

    record: Record
    start: int
    stop: int
    members: list["_Piece"] = field(default_factory=list)
    alone: Tensor | None = None
    storage: Storage | None = None


@dataclass(slots=True)
class _Piece:
    """A tensor, or a part of a sparse one; `start` and `stop` are the bytes that it reaches.

    `target` is the type that its elements become, if they change.
    """

    name: str
    tensor: Tensor
    record: Record
    target: str | None
    start: int
    stop: int
    segment: _Segment | None = None


def laid_out(
    tensors: Sequence[Named], *, compact: bool = False, casting: Casting | None = None
) -> Layout:
    """Return how to write tensors so that those which share elements still do.

    Whole storages are kept, or if `compact` only the runs of elements that a tensor reaches; a
    tensor with gaps that has its run for itself becomes contiguous. With a `casting`, elements
    change their type on the way. Raises InputError, with the tensor's name, for elements that are
    not in the file.
    """
    pieces = [[_piece(name, part, casting) for part in t.parts or (t,)] for name, t in tensors]
    # What may share a storage in the new file: tensors of one record that become of one type.
    groups: dict[tuple[Record, str | None], list[_Piece]] = {}
    for piece in (piece for several in pieces for piece in several):
        groups.setdefault((piece.record, piece.target), []).append(piece)
    for members in groups.values():
        _divide(members, compact)
    new = _NewStorages(casting)
    moved = []
    for (name, tensor), parts in zip(tensors, pieces, strict=True):
        written = [new.moved(part) for part in parts]
        moved.append((name, replace(tensor, parts=tuple(written)) if tensor.parts else written[0]))
    return Layout(tuple(moved), new.sources, new.sizes)


def _piece(name: str, tensor: Tensor, casting: Casting | None) -> _Piece:
    target = casting.target(name, tensor.dtype) if casting is not None else None
    return _Piece(name, tensor, record_of(tensor, name), target, *extent(tensor))


def _divide(members: list[_Piece], compact: bool) -> None:
    """Give each tensor of a record the run of bytes in which it is written."""
    record = members[0].record
    # A deflated array of numpy begins with its header.
    starts_late = record.is_deflated and all(piece.tensor.offset for piece in members)
    if not compact and not starts_late:
        whole = _Segment(record, 0, record.size_bytes, members)
        for piece in members:
            piece.segment = whole
        return
    unit = max(item_bytes(piece.tensor.dtype) for piece in members)
    segment: _Segment | None = None
    for piece in sorted(members, key=lambda piece: (piece.start, piece.stop)):
        start = piece.start - piece.start % unit  # so that offsets are whole numbers of elements
        if segment is None or (start >= segment.stop and start != segment.start):
            segment = _Segment(record, start, piece.stop)
        segment.stop = max(segment.stop, piece.stop)
        segment.members.append(piece)
        piece.segment = segment
    for piece in members:
        if piece.segment is not None and piece.segment.members[0] is piece:
            piece.segment.alone = _without_gaps(piece.segment)


def _without_gaps(segment: _Segment) -> Tensor | None:
    """Return the only tensor of a segment if its elements take less room than the segment."""
    first = segment.members[0].tensor
    needed = count(first) * item_bytes(first.dtype)
    if needed >= segment.stop - segment.start:
        return None
    is_only = all(identity(piece.tensor) == identity(first) for piece in segment.members)
    return first if is_only else None


@dataclass(slots=True)
class _NewStorages:
    """Gives each segment a storage when a tensor first needs it."""

    casting: Casting | None
    sources: dict[str, Source] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def moved(self, piece: _Piece) -> Tensor:
        """Return a tensor as it is in the new file."""
        tensor, segment = piece.tensor, piece.segment
        assert segment is not None
        if segment.storage is None:
            segment.storage = self._storage(segment, piece.target)
        offset = (piece.start - segment.start) // item_bytes(tensor.dtype)
        is_alone = segment.alone is not None
        return replace(
            tensor,
            dtype=piece.target or tensor.dtype,
            stride=contiguous_stride(tensor.shape) if is_alone else tensor.stride,
            offset=0 if is_alone else offset,
            storage=segment.storage,
            pending=() if is_alone else tensor.pending,
            device="cpu",
            requires_grad=False,
            role=None,
        )

    def _storage(self, segment: _Segment, target: str | None) -> Storage:
        key = str(len(self.sources))
        source, size = _source(segment)
        first = segment.members[0]
        if target is not None and self.casting is not None:
            row = segment.alone or _as_one_row(segment)
            elements = partial(raw_blocks, row, first.name)
            source = partial(self.casting.blocks, first.name, first.tensor.dtype, elements)
            size = count(row) * item_bytes(target)
        self.sources[key], self.sizes[key] = source, size
        return Storage(key, "cpu", size, None)


def _source(segment: _Segment) -> tuple[Source, int]:
    """Return where the bytes of a segment come from, and how many they are."""
    record, name, alone = segment.record, segment.members[0].name, segment.alone
    if alone is not None:
        return partial(raw_blocks, alone, name), count(alone) * item_bytes(alone.dtype)
    size = segment.stop - segment.start
    storages = (piece.tensor.storage for piece in segment.members)
    if any(storage is not None and storage.big_endian for storage in storages):
        return partial(raw_blocks, _as_one_row(segment), name), size
    if size == record.size_bytes:
        return record, size
    if record.is_deflated:
        return partial(blocks, record, start=segment.start, stop=segment.stop), size
    return Record(record.name, record.file, record.offset + segment.start, size, size), size


def _as_one_row(segment: _Segment) -> Tensor:
    """Return all elements of a segment as one tensor."""
    first = segment.members[0]
    dtype = first.tensor.dtype
    if any(piece.tensor.dtype != dtype for piece in segment.members):
        what = f"{segment.record.file}: {first.name} shares elements with another type"
        raise InputError(what, "such elements can't be converted: leave it out with --filter")
    item = item_bytes(dtype)
    length = (segment.stop - segment.start) // item
    at = segment.start // item
    return replace(first.tensor, shape=(length,), stride=(1,), offset=at, pending=())


def distinct(tensors: Iterable[Named]) -> list[Tensor]:
    """Return the tensors, of those that are the same elements the first."""
    found: dict[tuple[object, ...], Tensor] = {}
    for _, tensor in tensors:
        found.setdefault(identity(tensor), tensor)
    return list(found.values())
