"""TensorBoard's event files, read with its own library, which is imported only here."""

import os
import struct
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pttool.core.curve.logs import Log
from pttool.errors import InputError, UnavailableError

MARK = "tfevents"  # in the name of every event file
STEP, TIME = "step", "time_s"


def is_event_file(path: Path) -> bool:
    """Whether a file is named as TensorBoard names its own."""
    return MARK in path.name


def event_folders(folder: Path) -> list[Path]:
    """Return the folders in and below one that hold event files: TensorBoard's runs, in order."""
    found = {path.parent for path in folder.rglob(f"*{MARK}*") if path.is_file()}
    return sorted(found)


def read_events(name: str, path: Path) -> Log:
    """Return the scalars of an event file or of those in a folder, a column for each tag.

    Each event is a row of its own, with its `step`, and `time_s` since the first in seconds. Raises
    UnavailableError without tensorboard, InputError where no file holds a scalar.
    """
    loader, make_ndarray = _library(name)
    log = Log(name)
    start: float | None = None
    for file in sorted(path.glob(f"*{MARK}*")) if path.is_dir() else [path]:
        count = 0
        for event in loader(os.fspath(file)).Load():
            count += 1
            start = event.wall_time if start is None else start
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "scalars":
                    number = float(make_ndarray(value.tensor).item())
                    place = {STEP: event.step, TIME: event.wall_time - start}
                    log.add_row({**place, value.tag: number}, f"event {count}")
        _check(file, count, log)
    if not log.rows:
        reason = log.notes[0] if log.notes else f"{name}: holds no scalars yet"
        raise InputError(reason, "is it an event file? has the run written anything?")
    return log


def _library(name: str) -> Sequence[Any]:
    try:
        files = import_module("tensorboard.backend.event_processing.event_file_loader")
        tensors = import_module("tensorboard.util.tensor_util")
    except ImportError as error:
        message = f"{name}: reading TensorBoard's event files needs tensorboard"
        raise UnavailableError(message, "pip install tensorboard") from error
    return files.EventFileLoader, tensors.make_ndarray


def _check(file: Path, count: int, log: Log) -> None:
    """Note where the library, which keeps silent on damage, has read less than there is.

    A record is a length (uint64, little-endian), its checksum (4 bytes), so many bytes, and their
    checksum (TFRecord, as TensorFlow's docs have it).
    """
    size, place, records = file.stat().st_size, 0, 0
    with file.open("rb") as stream:
        while place + 12 <= size:
            stream.seek(place)
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > size - place - 16:
                break
            place += length + 16
            records += 1
    if count == 0 and size > 0:
        log.notes.append(f"{file}: holds no events of TensorBoard")
    elif count < records or place < size:
        said = f"{file}: only its first {count} events can be read"
        log.notes.append(f"{said}: it is damaged, or still being written")
