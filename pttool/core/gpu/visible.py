"""CUDA_VISIBLE_DEVICES as torch.cuda._parse_visible_devices and _device_count_nvml read it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pttool.core.gpu.types import Gpu

VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Visible:
    """The devices that a value lets through, in its order, and the rule that hides some.

    `indices` are places in the list of UUIDs that was given. `is_malformed` is a value at which
    torch itself fails.
    """

    indices: tuple[int, ...]
    rule: str | None = None
    is_malformed: bool = False


def visible_devices(value: str | None, uuids: Sequence[str]) -> Visible:
    """Return which of the devices a value of CUDA_VISIBLE_DEVICES lets through; None is unset.

    The UUIDs are those of the GPUs, or of the MIG instances where the value begins with MIG-.
    """
    if value is None:
        return Visible(tuple(range(len(uuids))))
    for prefix in ("GPU-", "MIG-"):
        if value.startswith(prefix):
            return _by_uuid(value.split(","), prefix, uuids)
    return _by_number(value.split(","), len(uuids))


@dataclass(frozen=True, slots=True)
class VisibleDevices:
    """The UUIDs that the environment lets through, in CUDA's order; a note where it hides some."""

    uuids: tuple[str, ...]
    note: str | None

    def place_of(self, uuid: str | None) -> int | None:
        """Return the N of cuda:N, or None for what is hidden."""
        return self.uuids.index(uuid) if uuid in self.uuids else None


def visible_here(gpus: Sequence[Gpu]) -> VisibleDevices:
    """Return what the environment's CUDA_VISIBLE_DEVICES lets through.

    Numbers count as CUDA_DEVICE_ORDER=PCI_BUS_ID has it.
    """
    value = os.environ.get(VARIABLE)
    uuids = [gpu.uuid or "" for gpu in gpus]
    if value is not None and value.startswith("MIG-"):
        uuids = [instance.uuid or "" for gpu in gpus for instance in gpu.instances]
    seen = visible_devices(value, uuids)
    note = None if seen.rule is None else f"{VARIABLE}={value}: {seen.rule}"
    return VisibleDevices(tuple(uuids[place] for place in seen.indices), note)


def _by_uuid(names: Sequence[str], prefix: str, uuids: Sequence[str]) -> Visible:
    taken: list[str] = []
    for name in names:
        if name in taken:
            return Visible((), f"{name} is there twice, which empties the list")
        if not name.startswith(prefix):
            break
        taken.append(name)
    found: list[int] = []
    for name in taken:
        matches = [place for place, uuid in enumerate(uuids) if uuid.startswith(name)]
        if len(matches) != 1:
            what = "fits several devices" if matches else "is no device"
            return Visible(tuple(found), f"{name} {what}, which ends the list")
        if matches[0] in found:
            return Visible((), f"{name} is there twice, which empties the list")
        found += matches
    if len(taken) < len(names):
        return Visible(tuple(found), f"{names[len(taken)]!r} is no {prefix}, which ends the list")
    return Visible(tuple(found))


def _by_number(texts: Sequence[str], count: int) -> Visible:
    """Ordinals in the order that CUDA_DEVICE_ORDER says."""
    numbers: list[int] = []
    rule = None
    for text in texts:
        try:
            number = _leading_number(text.strip())
        except ValueError:
            return Visible((), f"{text!r} is no number, at which torch fails", is_malformed=True)
        # A repeated number counts even after one that is no device.
        if number in numbers:
            return Visible((), f"{number} is there twice, which empties the list")
        if number < 0:
            rule = f"{text!r} is no device, which ends the list"
            break
        numbers.append(number)
    for place, number in enumerate(numbers):
        if number >= count:
            return Visible(tuple(numbers[:place]), f"{number} is no device, which ends the list")
    return Visible(tuple(numbers), rule)


def _leading_number(text: str) -> int:
    """Return the number that a text begins with, as C's strtoul does: 1 for 1gpu; else -1."""
    end = 0
    while end < len(text) and (text[end].isdigit() or (end == 0 and text[end] in "+-")):
        end += 1
    return int(text[:end]) if end else -1
