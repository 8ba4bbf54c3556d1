"""Processes on GPUs as rows: what NVML lists, joined with /proc, and who holds a device besides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pttool.core.gpu.holders import Holder, Holders
from pttool.core.gpu.proc import ProcessEntry, is_orphan, read_process, started_at
from pttool.core.gpu.types import Gpu, Process, Snapshot

UNKNOWN = "n/a"


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process on a GPU. One that isn't `visible` has no /proc here: another PID namespace's.

    `hidden` ones are listed by nobody, but hold the device open; `orphan` ones outlived the
    process that started them. `started_at` is UTC in ISO 8601.
    """

    pid: int
    user: str | None
    command: str | None
    memory_bytes: int | None
    type: str | None
    started_at: str | None
    visible: bool
    hidden: bool
    orphan: bool


def listed_rows(processes: Iterable[Process]) -> list[ProcessRow]:
    """Return a row for each process that NVML lists."""
    return [
        _row(process.pid, read_process(process.pid), process.memory_bytes, process.type)
        for process in processes
    ]


def hidden_rows(gpu: Gpu, snapshot: Snapshot, holders: Holders) -> list[ProcessRow]:
    """Return a row for each process that holds the GPU open, though NVML lists it nowhere.

    CUDA opens every GPU that it sees: a process that is listed on one may hold the others open.
    Nothing tells of which MIG instance: a narrowed GPU has none.
    """
    if gpu.is_narrowed:
        return []
    return unlisted_rows(holders.of_minor(gpu.minor) if gpu.minor is not None else (), snapshot)


def unlisted_rows(holders: Iterable[Holder], snapshot: Snapshot) -> list[ProcessRow]:
    """Return a row for each of these that NVML lists nowhere."""
    found = (holder.process for holder in holders)
    return [
        _row(process.pid, process, None, None, hidden=True)
        for process in found
        if process.pid not in snapshot.pids
    ]


def brief(rows: Sequence[ProcessRow] | None) -> str:
    """Return the processes in few words, for a cell: PID, user, memory, and the command's name."""
    if rows is None:
        return UNKNOWN
    return ", ".join(map(_brief, rows))


def _row(
    pid: int, entry: ProcessEntry | None, memory: int | None, type: str | None, hidden: bool = False
) -> ProcessRow:
    return ProcessRow(
        pid,
        user=None if entry is None else entry.user,
        command=None if entry is None else entry.command,
        memory_bytes=memory,
        type=type,
        started_at=None if entry is None else _iso(started_at(entry)),
        visible=entry is not None,
        hidden=hidden,
        orphan=entry is not None and is_orphan(entry),
    )


def _brief(row: ProcessRow) -> str:
    if not row.visible:
        who = "(not visible here)"
    else:
        who = f"{row.user} {(row.command or '').partition(' ')[0].rpartition('/')[2]}"
    held = "" if row.memory_bytes is None else f" {row.memory_bytes >> 20} MiB"
    marks = [mark for mark in ("hidden", "orphan") if getattr(row, mark)]
    return f"{row.pid} {who}{held}" + (f" ({', '.join(marks)})" if marks else "")


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
