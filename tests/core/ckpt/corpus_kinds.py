"""How a kind of checkpoint is registered, and the ways to save one object."""

import functools
import pickle
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

from pttool.core.ckpt.types import Format
from tests.core.ckpt.corpus_missing import missing_package

Writer = Callable[[Path], None]
Maker = Callable[[], object]


@dataclass(frozen=True)
class Kind:
    """A file or folder of the corpus; `name` is its path inside the corpus' folder."""

    name: str
    format: Format
    writer: Writer

    def write(self, folder: Path) -> Path:
        """Write it below `folder`, the same elements every time, and return its path."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        with warnings.catch_warnings(), missing_package():
            warnings.simplefilter("ignore")
            self.writer(path)
        return path


@dataclass(frozen=True)
class Save:
    """A way to write one object."""

    format: Format
    write: Callable[[object, Path], None]


class Theme(list[Kind]):
    """The kinds of one module of the corpus."""

    def kind(self, name: str, form: Format) -> Callable[[Writer], Writer]:
        """Register a function that writes a file."""

        def register(writer: Writer) -> Writer:
            self.append(Kind(name, form, writer))
            return writer

        return register

    def saved(self, name: str, ways: Mapping[str, Save] | None = None) -> Callable[[Maker], Maker]:
        """Register a function that makes an object: one file for each suffix of `ways`."""

        def register(make: Maker) -> Maker:
            for suffix, way in (ways or {"pt": ZIP}).items():
                writer = functools.partial(_save, way, make)
                self.append(Kind(f"{name}.{suffix}", way.format, writer))
            return make

        return register


def _save(way: Save, make: Maker, path: Path) -> None:
    way.write(make(), path)


def zipped(protocol: int = 2, cuda: int | None = None) -> Save:
    """Return torch's format since 1.6, its storages on a GPU if `cuda` says so."""

    def write(value: object, path: Path) -> None:
        with storages_on(cuda):
            torch.save(value, path, pickle_protocol=protocol)

    return Save(Format.TORCH_ZIP, write)


def legacy(protocol: int = 2, cuda: int | None = None) -> Save:
    """Return torch's format before 1.6: pickles one after the other, then the storages."""

    def write(value: object, path: Path) -> None:
        with storages_on(cuda):
            torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=False)

    return Save(Format.TORCH_LEGACY, write)


def pickled(protocol: int) -> Save:
    """Return Python's own pickle."""

    def write(value: object, path: Path) -> None:
        path.write_bytes(pickle.dumps(value, protocol=protocol))

    return Save(Format.PICKLE, write)


def storages_on(cuda: int | None) -> AbstractContextManager[object]:
    """Have torch.save believe that every storage is on this GPU."""
    if cuda is None:
        return nullcontext()
    return mock.patch.object(torch.serialization, "location_tag", return_value=f"cuda:{cuda}")


ZIP = zipped()
ZIP_AND_LEGACY = {"pt": ZIP, "legacy.pt": legacy()}
TORCH_WAYS = {
    **ZIP_AND_LEGACY,
    "p3.pt": zipped(3),
    "p4.pt": zipped(4),
    "p5.pt": zipped(5),
    "legacy_p4.pt": legacy(4),
    "cuda0.pt": zipped(cuda=0),
    "cuda3_p4.pt": zipped(4, cuda=3),
    "cuda0_legacy.pt": legacy(cuda=0),
    "cuda1_legacy_p4.pt": legacy(4, cuda=1),
}
PICKLE_WAYS = {f"p{protocol}.pkl": pickled(protocol) for protocol in range(6)}
