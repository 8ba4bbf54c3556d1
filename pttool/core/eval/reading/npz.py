"""The .npz format: a zip of .npy arrays, each streamed; np.load would hold them whole."""

import contextlib
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, cast

from pttool.core.eval.reading.npy import Header, read_header, read_rows
from pttool.core.eval.reading.tables import Column, Columns, Table, wide_keys
from pttool.errors import InputError

# What zipfile raises for a damaged, encrypted or exotic archive.
ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    RuntimeError, NotImplementedError, OverflowError,
)  # fmt: skip


def npz_table(name: str, reopen: Callable[[], BinaryIO]) -> Table:
    """Return the arrays of an .npz file. Raises InputError for a zip that can't be read."""
    with _zip_errors(name), reopen() as file, zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        keys = tuple(member[:-4] for member in members if member.endswith(".npy"))
        shapes = {}
        for key in keys:
            with contextlib.suppress(InputError, *ZIP_ERRORS):
                shapes[key] = _header(archive, key, name).shape
    if not keys:
        raise InputError(f"{name}: is a zip without .npy arrays", "save it with np.savez")

    def read(wanted: Sequence[str], rows: int) -> Iterator[Columns]:
        with contextlib.ExitStack() as stack:
            with _zip_errors(name):
                archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(reopen())))
                headers = [_header(archive, key, name) for key in wanted]
            rows = min(
                header.rows_in_a_block(rows, f"{name}: {key}")
                for header, key in zip(headers, wanted, strict=True)
            )
            columns = [_read_member(archive, key, rows, name) for key in wanted]
            while True:
                with _zip_errors(name):
                    block = [next(column, None) for column in columns]
                if any(column is None for column in block):
                    return
                yield dict(zip(wanted, cast("list[Column]", block), strict=True))

    return Table(name, keys, shapes, wide_keys(shapes), read)


def _header(archive: zipfile.ZipFile, key: str, name: str) -> Header:
    with archive.open(f"{key}.npy") as member:
        return read_header(cast("BinaryIO", member), f"{name}: {key}")


def _read_member(archive: zipfile.ZipFile, key: str, rows: int, name: str) -> Iterator[Column]:
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as member:
        stream = cast("BinaryIO", member)
        what = f"{name}: {key}"
        yield from read_rows(stream, read_header(stream, what), info.file_size, rows, what)
        if member.read(1):  # the end is where zipfile compares the checksum
            raise InputError(f"{what}: is longer than its zip says", "copy it again")


@contextlib.contextmanager
def _zip_errors(name: str) -> Iterator[None]:
    try:
        yield
    except ZIP_ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"{name}: is a damaged or cut zip: {reason}"
        raise InputError(message, "copy it again, or save it again with np.savez") from error
