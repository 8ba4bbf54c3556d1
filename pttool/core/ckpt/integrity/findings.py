"""Compare what a checkpoint says of its records with the records: checksums, sizes, headers.

What torch.load refuses, or would read from behind a record, is damage. torch checks no checksum.
"""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pttool.core.ckpt.files.payload import opened, read_at
from pttool.core.ckpt.integrity.record_status import DAMAGED, MISSING, WRONG_SIZE, Status, status_of
from pttool.core.ckpt.tensors.claims import false_claim
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.types import Checkpoint, Format, Record, Storage, Tensor
from pttool.core.ckpt.zips import layout as fmt
from pttool.core.ckpt.zips.consistency import compared
from pttool.core.ckpt.zips.directory import Directory, Entry, read_directory, read_local
from pttool.core.ckpt.zips.end import read_end
from pttool.errors import InputError

TORCH_ZIPS = (Format.TORCH_ZIP, Format.TORCHSCRIPT, Format.EXPORTED)
MS_DOS_FOLDER = 0x10


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to say of one record, or of a file as a whole; `tensors` are those that use it."""

    file: Path
    record: str | None
    status: Status
    size_bytes: int | None = None
    tensors: tuple[str, ...] = ()


def findings_in(checkpoint: Checkpoint) -> list[Finding]:
    """Check every record of a checkpoint, and what its tensors claim of them.

    Raises InputError for a zip whose directory can't be read.
    """
    if checkpoint.format in (*TORCH_ZIPS, Format.NPZ):
        directory = read_directory(checkpoint.path)
        records = directory.records()
        findings = _of_zip(directory)
    else:
        records = checkpoint.records
        in_chunks = checkpoint.format is Format.DISTRIBUTED
        findings = [
            _finding(record, status_of(record, is_chunk=in_chunks and record.name != ".metadata"))
            for record in records
        ]
    judged = _with_tensors(checkpoint, records, findings)
    return list(_without_root(judged)) if checkpoint.format in TORCH_ZIPS else judged


def damage_in_zip(path: Path) -> list[Finding]:
    """Check the records of a zip that can't be opened as a checkpoint: a damaged one may be why.

    None where all are fine, the directory itself is broken, or the file is no zip.
    """
    try:
        findings = list(_without_root(_of_zip(read_directory(path))))
    except InputError:
        return []
    return [] if all(finding.status.is_fine for finding in findings) else findings


def _of_zip(directory: Directory) -> list[Finding]:
    path = directory.path
    with opened(path) as file:
        findings = [_of_entry(file, entry, directory) for entry in directory.entries]
        end = read_end(file, 0, directory.size_bytes, path)
    if end.is_split:
        reason = Status(DAMAGED, "its end record says that it is one part of several files")
        findings.append(Finding(path, None, reason))
    return findings


def _of_entry(file: int, entry: Entry, directory: Directory) -> Finding:
    try:
        record = directory.record(entry)
        status = status_of(record)
        if status.is_fine:
            local = read_local(file, entry, directory)
            reasons, _ = compared(file, entry, local, directory)
            reasons += _attributes(file, entry, directory)
            status = Status(DAMAGED, "; ".join(reasons)) if reasons else status
    except InputError as error:
        reason = error.message.removeprefix(f"{directory.path}: ")
        return Finding(directory.path, entry.name, Status(DAMAGED, reason), entry.size_bytes)
    return _finding(record, status)


def _attributes(file: int, entry: Entry, directory: Directory) -> Iterator[str]:
    """Yield what else the directory says of a record for which torch would refuse it."""
    raw = read_at(file, entry.directory_offset, fmt.CENTRAL.size, directory.path)
    *_, disk, _, attributes, _ = fmt.CENTRAL.unpack(raw)
    if disk:
        yield f"the directory says that it is on disk {disk}"
    if attributes & MS_DOS_FOLDER and entry.size_bytes:
        yield "the directory says that it is a folder"


def _finding(record: Record, status: Status) -> Finding:
    return Finding(record.file, record.name, status, record.size_bytes)


def _with_tensors(
    checkpoint: Checkpoint, records: Sequence[Record], findings: Sequence[Finding]
) -> list[Finding]:
    """Say which tensors use each record, and what they claim of it that isn't so."""
    places = _Places(records)
    users: dict[int, dict[str, None]] = {}
    claims: dict[int, tuple[str, dict[str, None]]] = {}
    missing: dict[str, dict[str, None]] = {}
    for name, tensor, storage in _stored(checkpoint.tensors):
        if storage.record is None:
            missing.setdefault(storage.key, {})[name] = None
            continue
        index = places.index(storage.record)
        users.setdefault(index, {})[name] = None
        claim = false_claim(tensor, checkpoint.format)
        if claim is not None:
            claims.setdefault(index, (claim, {}))[1][name] = None
    judged = [
        replace(finding, tensors=tuple(users.get(index, ())))
        for index, finding in enumerate(findings)
    ]
    for index, (reason, names) in claims.items():
        if judged[index].status.is_fine:
            wrong = Status(WRONG_SIZE, reason)
            judged[index] = replace(judged[index], status=wrong, tensors=tuple(names))
    if checkpoint.format is not Format.PICKLE:  # where bytes may be written as a text
        judged += [_absent(checkpoint, key, tuple(names)) for key, names in missing.items()]
    return judged


def _stored(tensors: Iterable[Tensor]) -> Iterator[tuple[str, Tensor, Storage]]:
    """Yield every tensor that has a storage; the parts of others, under the names of those."""
    for tensor in tensors:
        for part in tensor.parts or (tensor,):
            if part.storage is not None:
                yield name_of(tensor), part, part.storage


def _absent(checkpoint: Checkpoint, key: str, names: tuple[str, ...]) -> Finding:
    in_folder = checkpoint.format in (Format.TORCH_ZIP, Format.TORCHSCRIPT)
    record = f"data/{key}" if in_folder else key
    return Finding(checkpoint.path, record, Status(MISSING, "there is no such record"), None, names)


class _Places:
    """Finds the record that a part of it, or the same one, lies in."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.exact = {(r.file, r.name, r.offset): index for index, r in enumerate(records)}
        self.starts: dict[Path, list[tuple[int, int]]] = {}
        for index, record in enumerate(records):
            self.starts.setdefault(record.file, []).append((record.offset, index))
        for starts in self.starts.values():
            starts.sort()

    def index(self, part: Record) -> int:
        """Return the number of the record."""
        exact = self.exact.get((part.file, part.name, part.offset))
        if exact is not None:
            return exact
        starts = self.starts[part.file]
        at = bisect.bisect_right(starts, part.offset, key=lambda start: start[0])
        return starts[max(at - 1, 0)][1]


def _without_root(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Leave out the folder that all records of a torch zip lie in."""
    found = list(findings)
    roots = {(finding.record or "").partition("/")[0] for finding in found}
    root = f"{roots.pop()}/" if len(roots) == 1 else ""
    for finding in found:
        yield replace(finding, record=(finding.record or "").removeprefix(root) or finding.record)
