"""Write a state dict as torch.save does, its storages copied from other files.

Source: torch.serialization._save, and PyTorchStreamWriter for the name of the root folder and the
records at the end.
"""

import zlib
from typing import BinaryIO

from pttool.core.ckpt.types import Record
from pttool.core.ckpt.weights.layout import Layout, Source
from pttool.core.ckpt.writing.state_dict_pickle import state_dict_pickle
from pttool.core.ckpt.zips.writer import ALIGNMENT, ZipWriter

FORMAT_VERSION = b"1"
ZIP_VERSION = b"3\n"


def write_state_dict(stream: BinaryIO, layout: Layout, *, stem: str) -> None:
    """Write a torch zip that loads with weights_only and by mmap; `stem` is the file name's.

    Bytes are copied within the kernel where nothing is to be done to them. Raises InputError for
    an input that ends early.
    """
    root = stem if stem and stem.isascii() else "archive"
    pickle = state_dict_pickle(layout.tensors)
    writer = ZipWriter(stream)
    writer.add(f"{root}/data.pkl", pickle)
    writer.add(f"{root}/.format_version", FORMAT_VERSION)
    writer.add(f"{root}/.storage_alignment", str(ALIGNMENT).encode())
    writer.add(f"{root}/byteorder", b"little")
    for key, source in layout.sources.items():
        _write_storage(writer, f"{root}/data/{key}", source, layout.sizes[key])
    writer.add(f"{root}/version", ZIP_VERSION)
    writer.add(f"{root}/.data/serialization_id", _serialization_id(pickle))
    writer.close()


def _write_storage(writer: ZipWriter, name: str, source: Source, size: int) -> None:
    if isinstance(source, Record):
        writer.copy(source, name)
    else:
        writer.add_stream(name, size, source())


def _serialization_id(pickle: bytes) -> bytes:
    """Return a fingerprint of the form of torch's, which only logs it."""
    return f"{len(pickle):020}{zlib.crc32(pickle):020}".encode()
