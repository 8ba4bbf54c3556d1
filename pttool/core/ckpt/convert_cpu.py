"""Make a checkpoint load on a machine without the device that it was saved on."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pttool.core.ckpt.editing.editable import editable
from pttool.core.ckpt.editing.rewriting import patched
from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.pickles.edits import Edit, edits
from pttool.core.ckpt.pickles.nodes import Global, Node, Text
from pttool.core.ckpt.pickles.traces import Tracer
from pttool.core.ckpt.types import Format
from pttool.core.report import Column, Report

CPU = "cpu"
# Tags that need no device: torch makes tensors on meta anywhere.
ANYWHERE = (CPU, "meta")
# torch._utils: their third argument is the device that a tensor is moved to when it is loaded.
MOVERS = (
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_xla_tensor",
)
BININT1, TUPLE1, TUPLE2 = ord("K"), 0x85, 0x86
WITHOUT_DEVICES = (Format.SAFETENSORS, Format.NPZ, Format.NPY)


FIELDS = ("device", "new_device", "storages")
COLUMNS = (
    Column("device", "Device"),
    Column("new_device", "Becomes"),
    Column("storages", "Storages", "count"),
)
FOOTER = (
    Column("storages", "Storages converted", "count"),
    Column("device_objects", "torch.device objects left", "count"),
    Column("output", "Written to"),
    Column("size_bytes", "Size", "bytes"),
)


@dataclass(frozen=True, slots=True)
class Tag:
    """A text that says on which device something was; `key` is that of a storage."""

    text: Text
    key: str


def convert_cpu(
    path: Path, target: Path | None, *, device_objects: bool = False, dry_run: bool = False
) -> Report:
    """Save a checkpoint with all its storages tagged "cpu"; `target` None means in place.

    Only the tags change: texts such as an argument `device="cuda:0"` stay, and so do torch.device
    objects unless `device_objects`. Raises InputError for a file that can't be read or edited.
    """
    if recognise(path) in WITHOUT_DEVICES:
        if not dry_run:
            patched(path, target or path, [])
        return _report(path, target or path, {}, 0, 0)
    with editable(path) as opened:
        tags = {trace: list(_tags(trace)) for trace in opened.traces}
        objects = {trace: list(_device_objects(trace)) for trace in opened.traces}
        changed = [
            _edits(trace, tags[trace], objects[trace] if device_objects else [])
            for trace in opened.traces
        ]
        if not dry_run:
            opened.save(changed, target or path)
    moved = {tag.key: str(tag.text) for found in tags.values() for tag in found}
    count = sum(map(len, objects.values()))
    left, changed_objects = (0, count) if device_objects else (count, 0)
    return _report(path, target or path, moved, left, changed_objects)


def _tags(trace: Tracer) -> Iterator[Tag]:
    """Yield the tags of storages, and of tensors that torch moves to a device."""
    root = trace.root
    if _is_in_tar(root) and _is_device(root[1]):
        yield Tag(root[1], str(root[0]))
    for id in trace.persistent_ids:
        is_storage = isinstance(id, tuple) and len(id) > 3 and id[0] == "storage"
        if is_storage and _is_device(id[3]):
            yield Tag(id[3], str(id[2]))
    for call in trace.calls:
        is_moved = call.path in MOVERS and isinstance(call.args, tuple) and len(call.args) > 2
        if is_moved and _is_device(call.args[2]):
            yield Tag(call.args[2], f"@{call.args[2].at}")


def _is_in_tar(root: Node) -> bool:
    """Whether a pickle is what a tar of torch keeps of a storage: (key, device, class)."""
    return isinstance(root, tuple) and len(root) == 3 and isinstance(root[2], Global)


def _is_device(node: Node) -> bool:
    return isinstance(node, Text) and node.partition(":")[0] not in ANYWHERE


def _device_objects(trace: Tracer) -> Iterator[Text]:
    """Yield the first argument of each torch.device that isn't the CPU."""
    for call in trace.calls:
        is_device = call.path == "torch.device" and isinstance(call.args, tuple) and call.args
        if is_device and _is_device(call.args[0]):
            yield call.args[0]


def _edits(trace: Tracer, tags: list[Tag], objects: list[Text]) -> list[Edit]:
    texts = [tag.text for tag in tags] + objects
    found = edits(trace, {text.at: CPU for text in texts})
    ends = {event.at: event.end for event in trace.events} if objects else {}
    found += [edit for text in objects for edit in _without_index(trace, text, ends)]
    return sorted(found, key=lambda edit: edit.start)


def _without_index(trace: Tracer, text: Text, ends: Mapping[int, int]) -> list[Edit]:
    """Return the edits that take the index from a device's arguments: "cpu:0" is no tag of torch.

    `ends` says where the opcode at a position ends.
    """
    position = ends[text.at]
    position = ends.get(position, position)  # where the text is kept at once
    if trace.buffer[position] != BININT1 or trace.buffer[position + 2] != TUPLE2:
        return []
    return [
        Edit(position, position + 2, b""),
        Edit(position + 2, position + 3, bytes([TUPLE1])),
    ]


def _report(
    path: Path, target: Path, moved: dict[str, str], left: int, changed_objects: int
) -> Report:
    counted = Counter(moved.values())
    notes = []
    if not moved and not changed_objects:
        notes.append(f"{path}: nothing to convert: no storage is on a device")
    if left:
        notes.append(f"{path}: {left} torch.device objects stay: --device-objects changes them")
    return Report(
        fields=FIELDS,
        columns=COLUMNS,
        items=[
            {"device": device, "new_device": CPU, "storages": count}
            for device, count in sorted(counted.items())
        ],
        summary={
            "storages": len(moved),
            "device_objects": left,
            "device_objects_changed": changed_objects,
            "output": str(target),
            "size_bytes": target.stat().st_size if target.exists() else None,
        },
        footer=FOOTER,
        notes=tuple(notes),
    )
