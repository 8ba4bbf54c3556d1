"""The shapes that torch's zip archive takes: by version, by option, and through other programs."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch.utils.serialization import config

from pttool.core.ckpt.types import Format
from tests.core.ckpt.corpus_kinds import Theme
from tests.core.ckpt.corpus_state_dicts import small_net

THEME = Theme()
NEW_RECORDS = (".format_version", ".storage_alignment", "byteorder", ".data/serialization_id")


def rezip(
    path: Path,
    edit: Callable[[str, bytes], bytes | None],
    value: object = None,
    compression: int = zipfile.ZIP_STORED,
    folders: bool = False,
) -> None:
    """Save a value, or the small net's state dict, then its archive again by zipfile.

    `edit` gets each record's name without the root folder; None drops the record.
    """
    torch.save(value or small_net().state_dict(), path)
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        if folders:
            archive.mkdir(path.stem)
            archive.mkdir(f"{path.stem}/data")
        for name, data in records.items():
            edited = edit(name.partition("/")[2], data)
            if edited is not None:
                archive.writestr(name, edited)


@THEME.kind("zip/rezipped.pt", Format.TORCH_ZIP)
def _rezipped(path: Path) -> None:
    """Nothing is aligned, and the folders have entries of their own."""
    rezip(path, lambda _, data: data, folders=True)


@THEME.kind("zip/deflated.pt", Format.TORCH_ZIP)
def _deflated(path: Path) -> None:
    rezip(path, lambda _, data: data, compression=zipfile.ZIP_DEFLATED)


@THEME.kind("zip/torch_1_6.pt", Format.TORCH_ZIP)
def _torch_1_6(path: Path) -> None:
    rezip(path, lambda name, data: None if name in NEW_RECORDS else data)


@THEME.kind("zip/big_endian.pt", Format.TORCH_ZIP)
def _big_endian(path: Path) -> None:
    """As a big-endian machine writes it; num_batches_tracked is of 8 bytes, the others of 4."""

    def swap(name: str, data: bytes) -> bytes:
        if name.startswith("data/"):
            return np.frombuffer(data, f"u{8 if len(data) == 8 else 4}").byteswap().tobytes()
        return b"big" if name == "byteorder" else data

    net = torch.nn.Linear(3, 3)
    rezip(path, swap, {**net.state_dict(), "num_batches_tracked": torch.tensor(5)})


@THEME.kind("zip/from_buffer.pt", Format.TORCH_ZIP)
def _from_buffer(path: Path) -> None:
    """The root folder is `archive`, not the file's name."""
    with path.open("wb") as file:
        torch.save(small_net().state_dict(), file)


@THEME.kind("zip/v1.0 best (日本).pth", Format.TORCH_ZIP)
def _odd_name(path: Path) -> None:
    torch.save(small_net().state_dict(), path)


@THEME.kind("zip/no_suffix", Format.TORCH_ZIP)
def _no_suffix(path: Path) -> None:
    torch.save(small_net().state_dict(), path)


@THEME.kind("zip/no_byteorder.pt", Format.TORCH_ZIP)
def _no_byteorder(path: Path) -> None:
    torch.save(small_net().state_dict(), path, _disable_byteorder_record=True)


@THEME.kind("zip/no_checksums.pt", Format.TORCH_ZIP)
def _no_checksums(path: Path) -> None:
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(small_net().state_dict(), path)
    finally:
        torch.serialization.set_crc32_options(before)


@THEME.kind("zip/skipped_data.pt", Format.TORCH_ZIP)
def _skipped_data(path: Path) -> None:
    """Room for the storages, to be filled in later."""
    with torch.serialization.skip_data():
        torch.save(small_net().state_dict(), path)


@THEME.kind("zip/aligned_4096.pt", Format.TORCH_ZIP)
def _aligned(path: Path) -> None:
    with mock.patch.object(config.save, "storage_alignment", 4096):
        torch.save(small_net().state_dict(), path)
