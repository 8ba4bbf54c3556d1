"""What /proc tells of a process: who it belongs to, when it began, who its parent is."""

import functools
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from pttool.core.sysroot import rooted

# The inode of the machine's own PID namespace: PROC_PID_INIT_INO in Linux's proc_ns.h.
INITIAL_PID_NAMESPACE = 0xEFFFFFFC
ENDED = ("Z", "X")


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process as /proc shows it; its PID and start together name it for good."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    started_ticks: int
    uid: int
    command: str
    namespace: int | None

    @property
    def user(self) -> str:
        """The name of the owner, or the number of one without a name."""
        return _user_name(self.uid)

    @property
    def has_ended(self) -> bool:
        """Whether it only waits for its parent to take note of its end."""
        return self.state in ENDED


def read_process(pid: int, proc: Path | None = None) -> ProcessEntry | None:
    """Return a process, or None for a PID that is none here: gone, a thread, or of elsewhere.

    `started_ticks` are clock ticks since boot, `namespace` the inode of the PID namespace, None
    where it may not be read (proc(5)). `proc` is the folder to read instead of the usual one.
    """
    folder = (proc or proc_folder()) / str(pid)
    try:
        stat = (folder / "stat").read_text("utf-8", "backslashreplace")
        status = (folder / "status").read_text("utf-8", "backslashreplace")
        cmdline = (folder / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    if _field(status, "Tgid") != pid:  # /proc finds threads by their number too
        return None
    # The name stands in parentheses, and may hold spaces and parentheses itself.
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    values = stat[stat.rindex(")") + 2 :].split()
    return ProcessEntry(
        pid=pid,
        name=name,
        state=values[0],
        parent=int(values[1]),
        group=int(values[2]),
        session=int(values[3]),
        started_ticks=int(values[19]),
        uid=_field(status, "Uid"),
        command=_command(cmdline) or f"[{name}]",
        namespace=_namespace(folder),
    )


def pids() -> list[int]:
    """Return the PIDs of all processes that are visible here."""
    return sorted(int(name) for name in os.listdir(proc_folder()) if name.isdigit())


def proc_folder() -> Path:
    """Return where processes are read; a test that moves just /dev has those of the system."""
    moved = rooted("/proc")
    return moved if moved.is_dir() else Path("/proc")


def ancestors(pid: int, proc: Path | None = None) -> set[int]:
    """Return the PIDs that a process descends from, up to the first of its namespace."""
    found: set[int] = set()
    entry = read_process(pid, proc)
    while entry is not None and entry.parent > 0 and entry.parent not in found:
        found.add(entry.parent)
        entry = read_process(entry.parent, proc)
    return found


def is_orphan(entry: ProcessEntry) -> bool:
    """Return whether the process was left behind: another one has adopted it.

    Only setsid(2) changes a session, and makes its caller the leader. So a parent in another
    session than a process that leads none did not fork it, and a child of the first process whose
    group's leader is gone has lost the command that it was part of.
    """
    if entry.session == entry.pid or entry.parent == 0:
        return False
    parent = read_process(entry.parent)
    if parent is not None and parent.session != entry.session:
        return True
    if entry.parent != 1 or entry.group == 0:  # a group from outside of this PID namespace
        return False
    leader = read_process(entry.group)
    return leader is None or leader.has_ended


def started_at(entry: ProcessEntry) -> float:
    """Return when a process began, in seconds since 1970."""
    return _boot_time_s() + entry.started_ticks / os.sysconf("SC_CLK_TCK")


def is_in_container() -> bool:
    """Return whether this process sees the PIDs of a container, not those of the machine."""
    return _namespace(proc_folder() / "self") not in (INITIAL_PID_NAMESPACE, None)


def _field(status: str, name: str) -> int:
    """Return the first number of a line of /proc/PID/status: of Uid, it is the real one."""
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


def _command(cmdline: bytes) -> str:
    return cmdline.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "backslashreplace")


def _namespace(folder: Path) -> int | None:
    try:
        target = os.readlink(folder / "ns" / "pid")
    except OSError:  # another user's, or gone
        return None
    return int(target.removeprefix("pid:[").removesuffix("]"))


@functools.cache
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@functools.cache
def _boot_time_s() -> int:
    lines = (proc_folder() / "stat").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("btime ")).split()[1])
