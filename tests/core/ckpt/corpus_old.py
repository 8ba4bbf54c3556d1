"""What torch wrote before 0.4 and still reads, written here by hand.

The reading code of `torch.serialization._legacy_load` is the description of these formats.
"""

import io
import pickle
import pickletools
import struct
import tarfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pttool.core.ckpt.types import Format
from tests.core.ckpt.corpus_kinds import Theme
from tests.core.ckpt.corpus_state_dicts import small_net

THEME = Theme()
PROTOCOL = 2
CLASS_NAMES = {torch.float32: "Float", torch.float64: "Double", torch.int64: "Long"}
REBUILD: Mapping[int, Any] = {1: torch._utils._rebuild_tensor, 2: torch._utils._rebuild_tensor_v2}


@dataclass(frozen=True, eq=False)
class Stored:
    """A storage to be written: the elements of a flat tensor, or a view of those of another."""

    key: int
    elements: torch.Tensor
    location: str = "cpu"
    view: tuple[str, int, int] | None = None

    def storage_class(self) -> object:
        """Return what stands for the class of storage in a pickle."""
        return getattr(torch, CLASS_NAMES[self.elements.dtype] + "Storage")

    def saved_id(self) -> tuple[object, ...]:
        """Return the persistent id that legacy files have in the place of a storage."""
        numel = self.elements.numel()
        storage = self.storage_class()
        return "storage", storage, str(self.key), self.location, numel, self.view

    def data(self) -> bytes:
        """Return the number of elements and the elements."""
        numel = struct.pack("<q", self.elements.numel())
        return numel + self.elements.numpy().tobytes()


@dataclass(frozen=True, eq=False)
class Old:
    """A tensor to be written."""

    stored: Stored
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    version: int = 1

    def reduced(self) -> tuple[object, tuple[object, ...]]:
        """Return how torch rebuilds it."""
        args = (self.stored, self.offset, self.size, self.stride)
        more: tuple[object, ...] = (False, OrderedDict()) if self.version == 2 else ()
        return REBUILD[self.version], (*args, *more)


class OldPickler(pickle.Pickler):
    """Writes storages by reference and OrderedDicts as Python 2 did: a list of pairs."""

    def persistent_id(self, obj: Any) -> Any:
        """Return the reference to a storage."""
        return obj.saved_id() if isinstance(obj, Stored) else None

    def reducer_override(self, obj: Any) -> Any:
        """Return how to rebuild a tensor or an ordered dict."""
        if isinstance(obj, Old):
            return obj.reduced()
        if type(obj) is OrderedDict:
            pairs = [[key, value] for key, value in obj.items()]
            return OrderedDict, ((pairs,) if pairs else ()), (vars(obj) or None)
        return NotImplemented


class TarPickler(OldPickler):
    """Writes tensors by reference too."""

    def persistent_id(self, obj: Any) -> Any:
        """Return the number under which a tensor is in the archive."""
        return id(obj) if isinstance(obj, Old) else None


def old(tensor: torch.Tensor, key: int, version: int = 1, location: str = "cpu") -> Old:
    """Return a tensor with a storage of its own."""
    stored = Stored(key, tensor.flatten(), location)
    return Old(stored, tuple(tensor.shape), tuple(tensor.stride()), version=version)


def pickled(value: object, pickler: type[pickle.Pickler] = OldPickler) -> bytes:
    """Return a pickle."""
    buffer = io.BytesIO()
    pickler(buffer, protocol=PROTOCOL).dump(value)
    return buffer.getvalue()


def python_2(data: bytes) -> bytes:
    """Return a pickle with its texts as Python 2 wrote a `str`."""
    out, ops = b"", list(pickletools.genops(data))
    ends = [start or 0 for _, _, start in ops[1:]] + [len(data)]
    for (code, arg, start), end in zip(ops, ends, strict=True):
        text = str(arg).encode()
        is_text = code.name == "BINUNICODE"
        out += b"U" + bytes([len(text)]) + text if is_text else data[start:end]
    return out


def write_legacy(path: Path, root: object, storages: list[Stored], as_python_2: bool) -> None:
    """Write the pickles of the legacy format, then the storages in the order of their keys."""
    info = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4, "long": 4}}
    keyed = {str(one.key): one for one in storages}
    version, magic = torch.serialization.PROTOCOL_VERSION, torch.serialization.MAGIC_NUMBER
    parts = [pickled(part) for part in (magic, version, info, root, sorted(keyed))]
    if as_python_2:
        parts = [python_2(part) for part in parts]
    path.write_bytes(b"".join([*parts, *(keyed[key].data() for key in sorted(keyed))]))


def write_tar(path: Path, root: object, tensors: list[Old], views: list[Any]) -> None:
    """Write the tar archive of torch before 0.2."""
    storages = list({one.stored.key: one.stored for one in tensors if not one.stored.view}.values())
    stored = pickled(len(storages)) + b"".join(
        pickled((one.key, one.location, one.storage_class())) + one.data() for one in storages
    )
    listed = pickled(len(tensors)) + b"".join(_tar_tensor(one) for one in tensors)
    members = {
        "sys_info": pickled({"protocol_version": 1000, "little_endian": True}),
        "pickle": pickled(root, TarPickler),
        "tensors": listed,
        "storages": stored + pickled(views),
    }
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _tar_tensor(tensor: Old) -> bytes:
    kind = getattr(torch, CLASS_NAMES[tensor.stored.elements.dtype] + "Tensor")
    head = pickled((id(tensor), tensor.stored.key, kind))
    numbers = (*tensor.size, *tensor.stride, tensor.offset)
    return head + struct.pack(f"<q{len(numbers)}q", len(tensor.size), *numbers)


@THEME.kind("old/torch_0_3.pth", Format.TORCH_LEGACY)
def _torch_0_3(path: Path) -> None:
    """Python 2, an OrderedDict made from a list of pairs, the first way to rebuild a tensor."""
    named = small_net().state_dict().items()
    olds = OrderedDict(
        (f"module.{name}", old(tensor, 10_000 + at, 1, "cuda:0"))
        for at, (name, tensor) in enumerate(named)
    )
    write_legacy(path, olds, [one.stored for one in olds.values()], as_python_2=True)


@THEME.kind("old/torch_0_4.pth", Format.TORCH_LEGACY)
def _torch_0_4(path: Path) -> None:
    """The list of pairs still, with the versions of the modules beside it."""
    state = small_net().state_dict()
    olds = OrderedDict(
        (f"module.{name}", old(tensor, 10_000 + at, 2, "cuda:0"))
        for at, (name, tensor) in enumerate(state.items())
    )
    metadata = [("", {"version": 1}), ("module", {"version": 1}), ("module.bn", {"version": 2})]
    vars(olds)["_metadata"] = OrderedDict(metadata)
    root = {"epoch": 3, "state_dict": olds}
    write_legacy(path, root, [one.stored for one in olds.values()], as_python_2=True)


def _views() -> "tuple[OrderedDict[str, Old], list[Any]]":
    """Return tensors in a storage and in views of it, and the views as a tar lists them."""
    whole = Stored(500, torch.arange(10.0))
    view = Stored(500, whole.elements, view=("501", 4, 3))
    in_tar = Stored(501, whole.elements[4:7], view=("501", 4, 3))
    tensors = OrderedDict(
        whole=Old(whole, (2, 5), (5, 1), version=2),
        view=Old(view, (2,), (1,), offset=1, version=2),
        again=Old(view, (3,), (1,), version=2),
        in_tar=Old(in_tar, (2,), (1,), offset=1),
    )
    return tensors, [(501, 500, 4, 3)]


@THEME.kind("old/storage_views.pt", Format.TORCH_LEGACY)
def _storage_views(path: Path) -> None:
    """Storages that are part of another, as torch before 0.4 had them."""
    tensors, _ = _views()
    del tensors["in_tar"]
    write_legacy(path, tensors, [tensors["whole"].stored], as_python_2=False)


@THEME.kind("old/tar.pth", Format.TORCH_TAR)
def _tar(path: Path) -> None:
    state = small_net().state_dict()
    olds = {
        f"module.{name}": old(tensor, 10_000 + at, 1, "cuda:0")
        for at, (name, tensor) in enumerate(state.items())
    }
    root = {"epoch": 3, "state_dict": OrderedDict(olds), "first": olds["module.conv.weight"]}
    write_tar(path, root, list(olds.values()), [])


@THEME.kind("old/tar_views.pth", Format.TORCH_TAR)
def _tar_views(path: Path) -> None:
    tensors, views = _views()
    kept = OrderedDict((name, tensors[name]) for name in ("whole", "in_tar"))
    write_tar(path, kept, list(kept.values()), views)
