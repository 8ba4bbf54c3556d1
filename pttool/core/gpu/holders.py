"""Who holds a GPU's device file open, whether NVML lists it or not."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pttool.core.gpu.proc import ProcessEntry, pids, proc_folder, read_process
from pttool.core.gpu.types import Gpu
from pttool.core.sysroot import rooted


@dataclass(frozen=True, slots=True)
class Holder:
    """A process and the device files that it has open, as nvidia0 or nvidia-uvm.

    An open descriptor keeps the driver from resetting the device; it says nothing of memory.
    """

    process: ProcessEntry
    devices: tuple[str, ...]

    @property
    def minors(self) -> tuple[int, ...]:
        """The minor numbers of the GPUs that it holds open: N of /dev/nvidiaN."""
        found = (re.fullmatch(r"nvidia(\d+)", device) for device in self.devices)
        return tuple(int(match[1]) for match in found if match)


@dataclass(frozen=True, slots=True)
class Holders:
    """All holders that could be found; `unreadable` counts processes that were not looked into."""

    found: tuple[Holder, ...]
    unreadable: int

    def of_minor(self, minor: int | None) -> list[Holder]:
        """Return those that hold the GPU with this minor number open."""
        return [holder for holder in self.found if minor in holder.minors]

    def of_no_gpu(self, gpus: Sequence[Gpu]) -> list[Holder]:
        """Return those that hold none of all these GPUs open, but nvidiactl or nvidia-uvm."""
        minors = {gpu.minor for gpu in gpus}
        return [holder for holder in self.found if not minors & set(holder.minors)]

    @property
    def note(self) -> str | None:
        """What to say of the processes that were not looked into."""
        if not self.unreadable:
            return None
        what = f"{self.unreadable} process{'es' * (self.unreadable > 1)}"
        who, helps = (
            (what, "even root needs CAP_SYS_PTRACE for that, which a container may lack")
            if os.geteuid() == 0
            else (f"{what} of other users", "run it as root")
        )
        return f"{who} can't be looked into for open devices: {helps}"


def find_holders() -> Holders:
    """Look through the descriptors of every process but this one.

    Those of another user can be read by root alone.
    """
    found: list[Holder] = []
    unreadable = 0
    for pid in pids():
        if pid == os.getpid():
            continue
        try:
            devices = _open_devices(pid)
        except PermissionError:
            unreadable += 1
            continue
        process = read_process(pid) if devices else None
        if process is not None:
            found.append(Holder(process, devices))
    return Holders(tuple(found), unreadable)


def _open_devices(pid: int) -> tuple[str, ...]:
    folder = proc_folder() / str(pid) / "fd"
    try:
        descriptors = os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(sorted({name for entry in descriptors if (name := _device(f"{folder}/{entry}"))}))


def _device(link: str) -> str | None:
    """Return the name below /dev of the NVIDIA device that a descriptor leads to."""
    try:
        target = os.readlink(link).removesuffix(" (deleted)")
    except (FileNotFoundError, ProcessLookupError):
        return None
    for dev in ("/dev/", f"{rooted('/dev')}/"):
        if target.startswith(f"{dev}nvidia"):
            return target.removeprefix(dev)
    return None
