"""What the NVIDIA driver wrote into the kernel's log: its Xid errors."""

import errno
import os
import re

from pttool.core.sysroot import rooted

# The GPU has fallen off the bus: NVIDIA's Xid catalogue knows no remedy but a restart.
FALLEN_OFF_THE_BUS = 79
_XID = re.compile(rb"NVRM: Xid \(PCI:([0-9a-fA-F:]+)[^)]*\): (\d+)")
_BLOCK_BYTES = 1 << 16


def has_fallen_off(pci_bus_id: str | None) -> bool | None:
    """Return whether the log tells of Xid 79 for this GPU, or for any where the bus is unknown.

    None where the log may not be read, as by other users than root.
    """
    log = _kernel_log()
    if log is None:
        return None
    places = {
        _place(match[1].decode())
        for match in _XID.finditer(log)
        if int(match[2]) == FALLEN_OFF_THE_BUS
    }
    return bool(places) if pci_bus_id is None else _place(pci_bus_id) in places


def _kernel_log() -> bytes | None:
    """Return /dev/kmsg, where every read(2) is one record (the kernel's ABI/testing/dev-kmsg)."""
    try:
        descriptor = os.open(rooted("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    records: list[bytes] = []
    try:
        while record := _record(descriptor):
            records.append(record)
    except BlockingIOError:  # its end
        pass
    finally:
        os.close(descriptor)
    return b"".join(records)


def _record(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _BLOCK_BYTES)
        except OSError as error:
            if error.errno != errno.EPIPE:  # the record was overwritten: the next one is next
                raise


def _place(bus_id: str) -> tuple[int, ...]:
    """Return domain, bus and device: NVML writes 00000000:0A:00.0 for the log's 0000:0a:00."""
    return tuple(int(part, 16) for part in bus_id.partition(".")[0].split(":"))
