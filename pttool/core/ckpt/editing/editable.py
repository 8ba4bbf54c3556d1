"""Open a checkpoint so that single texts in its pickles can be changed, and save it changed."""

import mmap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pttool.core.ckpt.containers.legacy import object_start
from pttool.core.ckpt.containers.legacy_tar import Tar, parts
from pttool.core.ckpt.containers.torch_zip import alignment, main_pickle, read_pickle
from pttool.core.ckpt.editing.rewriting import patched, rezipped, spliced
from pttool.core.ckpt.files.watching import changing, version
from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.pickles.edits import Edit, applied, fitted
from pttool.core.ckpt.pickles.nodes import Span
from pttool.core.ckpt.pickles.traces import Tracer
from pttool.core.ckpt.tensors.leaves import Leaves
from pttool.core.ckpt.tensors.storages import Storages, Typed
from pttool.core.ckpt.types import Format, Tensor, Value
from pttool.core.ckpt.zips.directory import read_directory
from pttool.core.ckpt.zips.layout import STORED
from pttool.core.ckpt.zips.patching import zip_patches
from pttool.errors import InputError

REFUSED = {
    Format.TORCHSCRIPT: "is TorchScript, whose code names what its pickle holds",
    Format.EXPORTED: "is an exported program, whose graph names its weights",
    Format.DISTRIBUTED: "is a folder of torch.distributed.checkpoint",
    Format.SHARDED: "is an index of shards",
    Format.NPZ: "is an archive of numpy, without names or devices of torch",
    Format.NPY: "is an array of numpy, without names or devices of torch",
}
HINTS = {
    Format.TORCHSCRIPT: "load it with torch.jit.load(FILE, map_location='cpu'), and save it again",
    Format.EXPORTED: "load it with torch.export.load, and save it again",
    Format.DISTRIBUTED: "make one file of it: python -m torch.distributed.checkpoint.format_utils",
    Format.SHARDED: "give the files that it lists",
}

Changes = Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Editable:
    """A checkpoint open for changes. `main` is the trace of what was saved, `inner` of the others.

    The texts in the paths of `tensors` and `values` are those of `main`.
    """

    path: Path
    format: Format
    main: Tracer
    inner: tuple[Tracer, ...]
    tensors: tuple[Tensor, ...]
    values: tuple[Value, ...]
    save: Callable[[list[list[Edit]], Path], None]

    @property
    def traces(self) -> tuple[Tracer, ...]:
        """All traces: `main` first."""
        return (self.main, *self.inner)


@contextmanager
def editable(path: Path) -> Iterator[Editable]:
    """Open a checkpoint for changes; its `save` takes the edits of each trace, and where to.

    Raises InputError for a file that can't be read or whose kind can't be edited; saving in place
    raises UnavailableError for one that another process changed meanwhile.
    """
    before = version(path)
    with _opened(path) as opened:

        def save(edits: list[list[Edit]], target: Path) -> None:
            if target == path and version(path) != before:
                raise changing(path)
            opened.save(edits, target)

        yield replace(opened, save=save)


@contextmanager
def _opened(path: Path) -> Iterator[Editable]:
    kind = recognise(path)
    if kind in REFUSED:
        raise InputError(f"{path}: {REFUSED[kind]}: it can't be edited", HINTS.get(kind))
    if kind is Format.TORCH_ZIP:
        yield _of_zip(path)
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        match kind:
            case Format.TORCH_LEGACY:
                yield _of_legacy(path, whole)
            case Format.TORCH_TAR:
                yield _of_tar(path, whole)
            case _:
                yield _of_raw_pickle(path, whole)


def _of_zip(path: Path) -> Editable:
    directory = read_directory(path)
    entry = main_pickle(directory)
    record = directory.record(entry)
    payload = read_pickle(record)
    trace = _traced(payload, 0, path)

    def save(edits: list[list[Edit]], target: Path) -> None:
        if not edits[0]:
            patched(path, target, [])
            return
        fitting = fitted(trace, edits[0]) if entry.method == STORED else None
        rest = payload[trace.position :]
        if fitting is None:
            changed = applied(payload, 0, trace.position, edits[0])
            step = alignment(directory, entry.name.removesuffix("data.pkl"))
            rezipped(directory, entry, changed + rest, step, target)
        else:
            patched(path, target, zip_patches(directory, entry, fitting + rest))

    return _editable(path, Format.TORCH_ZIP, trace, (), Storages(lambda key: None), save)


def _of_legacy(path: Path, whole: mmap.mmap) -> Editable:
    trace = _traced(whole, object_start(whole, path, 0), path)

    def save(edits: list[list[Edit]], target: Path) -> None:
        spliced(path, target, _same_length(trace, edits[0]) or edits[0])

    return _editable(path, Format.TORCH_LEGACY, trace, (), Storages(lambda key: None), save)


def _of_tar(path: Path, whole: mmap.mmap) -> Editable:
    members, tar = parts(path), Tar(whole, path)
    storages = tar.storages(members["storages"].offset)
    inner = tuple(
        _traced(whole, pickle.start, path)
        for pickle in tar.pickles
        if isinstance(pickle.root, tuple) and len(pickle.root) == 3
    )
    tensors = tar.tensors(members["tensors"].offset, storages)
    trace = _traced(whole, members["pickle"].offset, path)
    found = Storages(lambda key: None, outside=tensors.get)

    def save(edits: list[list[Edit]], target: Path) -> None:
        traces = (trace, *inner)
        spliced(path, target, _all_of_same_length(traces, edits, path, "a tar"))

    return _editable(path, Format.TORCH_TAR, trace, inner, found, save)


def _of_raw_pickle(path: Path, whole: mmap.mmap) -> Editable:
    trace = _traced(whole, 0, path)
    inner: dict[Span, tuple[Tracer, Typed | None]] = {}

    def nested(content: bytes | Span) -> Typed | None:
        if not isinstance(content, Span) or content.is_text:
            raise InputError(
                f"{path}: keeps its tensors as text, as pickle protocols below 3 do",
                "load it with pickle and save it with torch.save",
            )
        if content not in inner:
            own = _traced(whole, object_start(whole, path, content.start), path)
            inner[content] = own, Storages(lambda key: None).typed(own.root)
        return inner[content][1]

    storages = Storages(lambda key: None, nested)

    def save(edits: list[list[Edit]], target: Path) -> None:
        traces = tuple(trace for trace, _ in inner.values())
        fitting = _all_of_same_length(traces, edits[1:], path, "bytes of a known length")
        spliced(path, target, sorted((*edits[0], *fitting), key=lambda edit: edit.start))

    opened = _editable(path, Format.PICKLE, trace, (), storages, save)
    return Editable(
        path, Format.PICKLE, trace, tuple(own for own, _ in inner.values()), opened.tensors,
        opened.values, save,
    )  # fmt: skip


def _traced(buffer: bytes | mmap.mmap, start: int, path: Path) -> Tracer:
    trace = Tracer(buffer, start, str(path))
    trace.walk()
    return trace


def _editable(
    path: Path,
    kind: Format,
    main: Tracer,
    inner: tuple[Tracer, ...],
    storages: Storages,
    save: Callable[[list[list[Edit]], Path], None],
) -> Editable:
    leaves = list(Leaves(main.root, storages))
    tensors = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))
    values = tuple(leaf for leaf in leaves if isinstance(leaf, Value))
    return Editable(path, kind, main, inner, tensors, values, save)


def _same_length(trace: Tracer, edits: list[Edit]) -> list[Edit] | None:
    """Return one edit that replaces a pickle by one of its length, or None if it becomes longer."""
    if not edits:
        return []
    fitting = fitted(trace, edits)
    return None if fitting is None else [Edit(trace.start, trace.position, fitting)]


def _all_of_same_length(
    traces: tuple[Tracer, ...], edits: list[list[Edit]], path: Path, kept_in: str
) -> list[Edit]:
    found: list[Edit] = []
    for trace, own in zip(traces, edits, strict=True):
        fitting = _same_length(trace, own)
        if fitting is None:
            raise InputError(
                f"{path}: its names would become longer, and they are kept in {kept_in}",
                "load it with torch and save it again",
            )
        found += fitting
    return sorted(found, key=lambda edit: edit.start)
