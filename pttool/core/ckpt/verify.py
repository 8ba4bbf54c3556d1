"""Whether a checkpoint is as it was written, and which records and tensors are not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pttool.core.ckpt.batch import each
from pttool.core.ckpt.containers.sharded import read_index
from pttool.core.ckpt.files.words import listed
from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.integrity.findings import TORCH_ZIPS, Finding, damage_in_zip, findings_in
from pttool.core.ckpt.integrity.record_status import DAMAGED, MISSING, NO_CHECKSUM, OK, Status
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.types import Checkpoint, Format, Tensor, Value
from pttool.core.ckpt.zips.consistency import consistency
from pttool.core.ckpt.zips.directory import read_directory
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, InputError

FIELDS = ("file", "record", "status", "size_bytes", "reason", "tensors")
COLUMNS = (
    Column("record", "Record"),
    Column("status", "Status"),
    Column("size_bytes", "Bytes", "bytes"),
    Column("tensors", "Tensors", "list"),
    Column("reason", "Reason"),
)
FOOTER = (
    Column("files", "Files", "count"),
    Column("records", "Records", "count"),
    Column("bytes", "Bytes", "bytes"),
    Column("damaged", "Damaged", "count"),
)


@dataclass(frozen=True, slots=True)
class Checked:
    """One file or folder: its records, and what else is to say. `path` is where it was read."""

    path: Path
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def damaged(self) -> list[Finding]:
        """What isn't fine."""
        return [finding for finding in self.findings if not finding.status.is_fine]

    @property
    def has_checksums(self) -> bool:
        """Whether the content of any record could be checked."""
        return any(finding.status.status in (OK, DAMAGED) for finding in self.findings)


def verify(paths: Sequence[Path]) -> Report:
    """Check the records of each file or folder against the checksums and sizes that it states.

    Each is read once, in bounded memory. A format without checksums is no damage: only its sizes
    can be compared. The report fails where anything is damaged. Raises InputError for a single path
    that can't be read as a checkpoint.
    """
    done = each(paths, _checked)
    results = done.results
    done = done.judged(_failure(results))
    findings = [finding for _, checked in results for finding in checked.findings]
    summary = {
        "files": len(results),
        "records": len(findings),
        "damaged": sum(len(checked.damaged) for _, checked in results),
        "bytes": sum(finding.size_bytes or 0 for finding in findings),
        "checksums": all(checked.has_checksums for _, checked in results),
    }
    files = {finding.file for finding in findings}
    return Report(
        FIELDS,
        (Column("file", "File"), *COLUMNS) if len(files) > 1 else COLUMNS,
        [item for name, checked in results for item in _items(name, checked)],
        summary,
        FOOTER,
        (*(note for name, checked in results for note in _notes(name, checked)), *done.notes),
        done.failure,
    )


def only_damaged(report: Report) -> Report:
    """Return the report without the rows of records that are fine: a short table."""
    fine = (OK, NO_CHECKSUM)
    return replace(report, items=[item for item in report.items if item["status"] not in fine])


def _checked(path: Path) -> Checked:
    if recognise(path) is Format.SHARDED:
        return _of_shards(path)
    try:
        checkpoint = read(path)
    except InputError as error:
        return _unreadable(path, error)
    return _of_checkpoint(checkpoint)


def _unreadable(path: Path, error: InputError) -> Checked:
    """Return which damaged records make a zip unreadable, if that is why, else raise the error."""
    damage = damage_in_zip(path)
    if not damage:
        raise error
    return Checked(path, tuple(damage), (error.message,))


def _of_checkpoint(checkpoint: Checkpoint) -> Checked:
    # Of a distributed one, these are among the findings.
    notes = checkpoint.warnings if checkpoint.format is not Format.DISTRIBUTED else ()
    if checkpoint.format in (*TORCH_ZIPS, Format.NPZ):
        notes += consistency(read_directory(checkpoint.path))
    return Checked(checkpoint.path, tuple(findings_in(checkpoint)), notes)


def _of_shards(path: Path) -> Checked:
    """Check every shard of an index, and that each holds the tensors that the index says."""
    index = read_index(path)
    findings: list[Finding] = []
    notes: list[str] = []
    for name in index.shards:
        wanted = [key for key, home in index.weight_map.items() if home == name]
        shard = _of_shard(index.path.parent / name, wanted)
        findings += shard.findings
        notes += (f"{name}: {note}" for note in shard.notes)
    return Checked(path, tuple(findings), tuple(notes))


def _of_shard(path: Path, wanted: Sequence[str]) -> Checked:
    if not path.exists():
        return _lost(path, Status(MISSING, "the shard is not there"), wanted)
    try:
        checkpoint = read(path)
    except InputError as error:
        damaged = Status(DAMAGED, error.message.removeprefix(f"{path}: "))
        return _lost(path, damaged, wanted)
    checked = _of_checkpoint(checkpoint)
    leaves: list[Tensor | Value] = [*checkpoint.tensors, *checkpoint.values]
    held = {name_of(leaf) for leaf in leaves}
    lacking = [key for key in wanted if key not in held]
    if lacking:
        lost = _lost(path, Status(MISSING, "the index says that they are here"), lacking)
        checked = replace(checked, findings=(*checked.findings, *lost.findings))
    extra = held.difference(wanted)
    if extra:
        note = f"holds what the index doesn't name: {listed(sorted(extra))}"
        checked = replace(checked, notes=(*checked.notes, note))
    return checked


def _lost(path: Path, status: Status, tensors: Sequence[str]) -> Checked:
    return Checked(path, (Finding(path, None, status, None, tuple(tensors)),))


def _items(name: str, checked: Checked) -> Iterator[dict[str, Any]]:
    for finding in checked.findings:
        yield {
            "file": name if finding.file == checked.path else str(finding.file),
            "record": finding.record,
            "status": finding.status.status,
            "size_bytes": finding.size_bytes,
            "reason": finding.status.reason,
            "tensors": list(finding.tensors),
        }


def _notes(name: str, checked: Checked) -> Iterator[str]:
    if not checked.has_checksums and not checked.damaged:
        yield f"{name}: stores no checksums: sizes were compared, contents can't be"
    yield from (f"{name}: {note.removeprefix(f'{checked.path}: ')}" for note in checked.notes)


def _failure(results: Sequence[tuple[str, Checked]]) -> CheckFailedError | None:
    damaged = [(name, checked.damaged) for name, checked in results if checked.damaged]
    hint = "copy or download it again"
    if not damaged:
        return None
    if len(damaged) > 1:
        names = listed(name for name, _ in damaged)
        return CheckFailedError(
            f"{len(damaged)} of {len(results)} files are damaged: {names}", hint
        )
    name, findings = damaged[0]
    count = "1 record is" if len(findings) == 1 else f"{len(findings):,} records are"
    said = listed(_said(finding) for finding in findings)
    return CheckFailedError(f"{name}: {count} damaged: {said}", hint)


def _said(finding: Finding) -> str:
    what = finding.record or finding.file.name
    if finding.status.status != DAMAGED:
        what += f" is {'missing' if finding.status.status == MISSING else 'of the wrong size'}"
    tensors = finding.tensors
    if not tensors:
        return what
    return f"{what} (tensor{'s' * (len(tensors) > 1)} {listed(tensors)})"
