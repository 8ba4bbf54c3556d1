"""Scenarios for the fake NVML: machines described field by field, as text."""

import os
from collections.abc import Mapping, Sequence

Fields = Mapping[str, object]

SYSTEM: Fields = {"driver": "580.95.05", "nvml": "13.580.95.05", "cuda": 13000}
A100: Fields = {
    "name": "NVIDIA A100-SXM4-80GB", "mem": "81920,600,0", "util": "0,0", "power": 52000,
    "powerlimit": 400000, "fan": "!3", "cc": "8,0", "pstate": 0, "persist": 1, "computemode": 0,
    "display": 0, "mig": "0,0", "ecc": "1,1", "eccerr0": 0, "eccerr1": 0, "clk0": 210, "clk1": 210,
    "clk2": 1593, "maxclk0": 1410, "maxclk1": 1410, "maxclk2": 1593, "arch": 7, "brand": 14,
    "pciegen": 4, "pciewidth": 16, "pciegenmax": 4, "pciewidthmax": 16, "throttle": 1,
    "enc": "0,0", "dec": "0,0", "maxmig": 7,
}  # fmt: skip


def uuid(index: int) -> str:
    """Return the UUID of the GPU with this index.

    It is of this process: locks on GPUs are the host's, and tests run side by side.
    """
    return f"GPU-{index:08d}-1111-2222-3333-{os.getpid():010d}{index:02d}"


def mig_uuid(index: int) -> str:
    """Return the UUID of the MIG instance with this index."""
    return f"MIG-{index:08d}-aaaa-bbbb-cccc-{os.getpid():010d}{index:02d}"


def gpu(index: int, **fields: object) -> str:
    """Return the lines of an idle A100, but for the fields given; a field that is None is absent.

    A field "m0_uuid" is "m0.uuid": of the first MIG instance.
    """
    own = {"uuid": uuid(index), "bus": f"00000000:{0x0A + index:02X}:00.0", "temp": 30 + index}
    values = {**A100, **own, **fields}
    return "".join(
        f"{index}.{_dotted(key)}={value}\n" for key, value in values.items() if value is not None
    )


def mig(index: int, gpu_instance: int, total_mib: int, **fields: object) -> dict[str, object]:
    """Return the fields, for `gpu`, of its MIG instance with this index."""
    values = {
        "name": f"NVIDIA A100-SXM4-80GB MIG {total_mib // 10240}g.{total_mib // 1024}gb",
        "uuid": mig_uuid(index), "mem": f"{total_mib},0,12", "gi": gpu_instance, "ci": 0, **fields,
    }  # fmt: skip
    return {f"m{index}_{key}": value for key, value in values.items()}


def machine(gpus: Sequence[str], **fields: object) -> str:
    """Return a scenario of these GPUs; `fields` are of the system, as init="!18"."""
    values = {**SYSTEM, "count": len(gpus), **fields}
    return "".join(f"{_dotted(key)}={value}\n" for key, value in values.items()) + "".join(gpus)


def _dotted(key: str) -> str:
    """Keyword arguments have no dots: m0_uuid and ghost_17 become m0.uuid and ghost.17."""
    head, underscore, tail = key.partition("_")
    is_part = head == "ghost" or head == "pname" or (head[:1] == "m" and head[1:].isdigit())
    return f"{head}.{tail}" if underscore and is_part else key
