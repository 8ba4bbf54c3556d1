"""Which format a checkpoint has: a file's is told by its bytes, a folder's by the names in it."""

import os
import re
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from pttool.core.ckpt.files.payload import opened, read_at
from pttool.core.ckpt.formats.archives import refused_folder, refused_tar, refused_zip
from pttool.core.ckpt.formats.impostors import refused
from pttool.core.ckpt.formats.signatures import NPY_MAGIC, TORCH_MAGIC_NUMBER, ZIP_HEADS
from pttool.core.ckpt.formats.tar_directory import members_of
from pttool.core.ckpt.types import Format, Record
from pttool.core.ckpt.zips.directory import read_directory
from pttool.errors import InputError

HEAD_BYTES = 1 << 16
LARGEST_INDEX = 1 << 26
MOST_TAR_MEMBERS = 1000
INDEX_SUFFIX = ".index.json"

# The magic number as each protocol of pickle writes it: LONG1, in a frame from protocol 4 on; a
# line of text in 0 and 1.
_LEGACY = re.compile(
    rb"\x80[\x02-\x05](\x95.{8})?\x8a\x0a"
    + re.escape(TORCH_MAGIC_NUMBER.to_bytes(10, "little"))
    + rb"\.|L%dL\n\." % TORCH_MAGIC_NUMBER,
    re.DOTALL,
)
# Protocols 2 to 5 name themselves; every opcode but PROTO can follow. Source: pickletools.
_PICKLE = re.compile(rb"\x80[\x02-\x05][().012BCFGIJKLMNPQRSTUVX\]abcdeghijlopqrstu}\x81-\x98]")
# Protocols 0 and 1 don't: an empty container or the name of a class, memoised or marked.
_OLD_PICKLE = re.compile(
    rb"\([dl](p\d+\n|\.)"
    rb"|[}\])](q.|r.{4}|\.)"
    rb"|\(*c[A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n(p\d+\n|q.|r.{4}|[()])"
    rb"|\(i[A-Za-z_][\w.]*\n[A-Za-z_]\w*\np\d+\n",
    re.DOTALL,
)
_SAFETENSORS = re.compile(rb".{8}\{[ \t\r\n]*[\"}]", re.DOTALL)
_INDEX = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"')
_MAIN_PICKLE = re.compile(r"([^/]+/)data\.pkl")
_SCRIPT = re.compile(r"([^/]+/)(constants\.pkl\Z|code/)")
_EXPORTED = re.compile(
    r"([^/]+/)?(models/[^/]+\.json|archive_format|serialized_exported_program\.json)"
)


def recognise(path: Path) -> Format:
    """Return the format of a file or folder.

    Raises InputError for one that is no checkpoint, saying what it is; for a torch zip whose
    directory is damaged; and for a path that can't be read. Sources: torch.serialization,
    torch.export.pt2_archive, the safetensors format, numpy.lib.format, and hf's index.json.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _of_folder(path, sorted(os.listdir(path)))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket or a device"
        raise InputError(f"{path}: is {kind}, not a file", "save what it gives to a file first")
    if not os.access(path, os.R_OK):
        raise unreadable(path, PermissionError())
    with opened(path) as file:
        size = os.fstat(file).st_size
        head = read_at(file, 0, HEAD_BYTES, path)
        return _of_file(file, path, head, size)


def indices_of(names: Sequence[str]) -> list[str]:
    """Return which of a folder's files are indices of shards, by their names."""
    return [name for name in names if name.endswith(INDEX_SUFFIX)]


def _of_file(file: int, path: Path, head: bytes, size: int) -> Format:
    if head.startswith(ZIP_HEADS):
        return _of_zip(path)
    if _LEGACY.match(head):
        return Format.TORCH_LEGACY
    if head.startswith(NPY_MAGIC):
        return Format.NPY
    if _PICKLE.match(head):
        return Format.PICKLE
    if _is_safetensors(head):
        return Format.SAFETENSORS
    members = list(islice(members_of(file, path), MOST_TAR_MEMBERS))
    if members:
        return _of_tar(path, members, size)
    if _INDEX.match(head) and b'"weight_map"' in read_at(file, 0, LARGEST_INDEX, path):
        return Format.SHARDED
    # A text can start like these, and ends without STOP.
    if _OLD_PICKLE.match(head) and read_at(file, size - 1, 1, path) == b".":
        return Format.PICKLE
    raise refused(file, path, head, size)


def _of_zip(path: Path) -> Format:
    # A rank's file is one zip after another, and only the last has an end to be found by.
    if path.suffix == ".distcp" and os.path.exists(path.parent / ".metadata"):
        what = f"{path}: is one rank's part of a distributed checkpoint"
        raise InputError(what, f"give its folder: {path.parent}")
    names = [entry.name for entry in read_directory(path).entries]
    if any(_EXPORTED.fullmatch(name) for name in names):
        return Format.EXPORTED
    roots = {found[1] for found in map(_MAIN_PICKLE.fullmatch, names) if found}
    scripts = {found[1] for found in map(_SCRIPT.match, names) if found}
    if roots:
        return Format.TORCH_ZIP if roots.isdisjoint(scripts) else Format.TORCHSCRIPT
    if names and all(name.endswith(".npy") for name in names):
        return Format.NPZ
    raise refused_zip(path, [name for name in names if not name.endswith("/")])


def _is_safetensors(head: bytes) -> bool:
    """Whether a file starts with a length and the JSON of a header.

    A length beyond the file is that of a cut one, which is said when it is opened; one of a
    terabyte is none.
    """
    return bool(_SAFETENSORS.match(head)) and int.from_bytes(head[:8], "little") < 1 << 40


def _of_tar(path: Path, members: Sequence[Record], size: int) -> Format:
    # Source: torch.serialization.legacy_load, which extracts these three.
    names = [member.name for member in members]
    if {"pickle", "storages", "tensors"} <= set(names):
        return Format.TORCH_TAR
    last = members[-1]
    raise refused_tar(path, names, is_cut=last.offset + last.size_bytes > size)


def _of_folder(path: Path, names: Sequence[str]) -> Format:
    if ".metadata" in names and any(name.endswith(".distcp") for name in names):
        return Format.DISTRIBUTED
    indices = indices_of(names)
    if len(indices) == 1:
        return Format.SHARDED
    raise refused_folder(path, names, indices)


def unreadable(path: Path, error: OSError | ValueError) -> InputError:
    """Return what to say of a file or folder that the system doesn't let be read."""
    if isinstance(error, FileNotFoundError):
        what = "is a link to a file that doesn't exist" if path.is_symlink() else "does not exist"
        return InputError(f"{path}: {what}", "check the path of the file")
    if isinstance(error, PermissionError):
        return InputError(f"{path}: permission denied", "ask its owner for permission to read it")
    reason = getattr(error, "strerror", None) or "is no name of a file"
    return InputError(f"{path}: {reason}", "check the path of the file")
