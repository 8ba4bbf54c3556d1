"""Feed files that mean harm to what reads checkpoints, in a process of its own.

`python -m tests.core.ckpt.fuzzing files FOLDER` takes every file of a folder, and
`... mutations FOLDER COUNT SEED` so many mutations of them. It prints a line of JSON for each of
the files, or one for all mutations, and ends with 1 at the first that makes anything but a
PttoolError or takes longer than SECONDS of the processor.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pttool.core.ckpt.reading import read
from pttool.core.ckpt.safety.weights_only import verdict
from pttool.core.ckpt.scan import audit_file
from pttool.core.ckpt.weights.state_dicts import find_weights
from pttool.errors import PttoolError

SECONDS = 10
# What lengths, counts and memo indices can be made of.
WILD = (
    *(b"\xff" * 4, b"\xff" * 8, b"\0" * 8, b"\0\0\0\x80", b"\xff\xff\xff\x7f", b"\0\0\0\0\0\1\0\0"),
    *(
        b".",
        b"(",
        b"R",
        b"Q",
        b"b",
        b"u",
        b"t",
        b"\x93",
        b"\x82\1",
        b"cos\nsystem\n",
        b"ios\nsystem\n",
    ),
)


class HangError(BaseException):
    """It takes too long."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Raise HangError where the block takes longer than SECONDS."""

    def stop(*args: object) -> None:
        raise HangError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def outcome(path: Path) -> dict[str, str]:
    """Return what reading and scanning give: words for what was found, or the error's."""
    said = {}
    uses: dict[str, Callable[[], object]] = {
        "scan": lambda: str(audit_file(path).verdict),
        "read": lambda: _read(path),
    }
    for name, use in uses.items():
        with watched():
            try:
                said[name] = str(use())
            except PttoolError as error:
                said[name] = error.message.removeprefix(f"{path}: ")
                said[name] = said[name].replace("\n", "<a second line>")
    return said


def _read(path: Path) -> str:
    checkpoint = read(path)
    verdict(checkpoint)
    with contextlib.suppress(PttoolError):
        find_weights(checkpoint)
    return "; ".join((f"{len(checkpoint.tensors)} tensors", *checkpoint.warnings))


def say(what: dict[str, Any]) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def peak_mib() -> float:
    """Return the most memory that this program has taken; getrusage counts what started it too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def run_files(folder: Path) -> None:
    """Try every file of a folder, each from the same start."""
    for path in sorted(folder.iterdir()):
        if not os.fork():
            said = outcome(path)
            say({"name": path.name, "peak_mib": peak_mib(), **said})
            os._exit(0)
        _, status = os.wait()
        if status:
            sys.exit(f"{path.name} ended with {os.waitstatus_to_exitcode(status)}")


def run_mutations(folder: Path, count: int, seed: str) -> None:
    """Try mutations of the files in a folder; each follows from the seed and its number."""
    sources = sorted(path for path in folder.rglob("*") if path.is_file())
    verdicts: dict[str, int] = {}
    slowest = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(count):
            chance = random.Random(f"{seed}/{number}")
            source = chance.choice(sources)
            data = mutated(source.read_bytes(), chance, chance.choice(sources))
            target = placed(source, folder, Path(scratch), data)
            start = time.process_time()
            try:
                said = outcome(target)
            except (Exception, HangError):
                traceback.print_exc(limit=-6)
                sys.exit(f"input {number} of seed {seed}, from {source.name}")
            slowest = max(slowest, time.process_time() - start)
            key = said["scan"] if said["scan"] in ("CLEAN", "UNKNOWN", "DANGEROUS") else "refused"
            verdicts[key] = verdicts.get(key, 0) + 1
    say({"count": count, "peak_mib": peak_mib(), "slowest_s": round(slowest, 3), **verdicts})


def placed(source: Path, folder: Path, scratch: Path, data: bytes) -> Path:
    """Write mutated bytes in the place of a file, among copies of what belongs to it."""
    top = source.relative_to(folder).parts[0]
    if top == source.name:
        target = scratch / f"file{source.suffix}"
        target.write_bytes(data)
        return target
    copy = scratch / top
    shutil.copytree(folder / top, copy, dirs_exist_ok=True)
    (copy / source.name).write_bytes(data)
    return copy


def mutated(data: bytes, chance: random.Random, other: Path) -> bytes:
    """Return other bytes, or a zip of which one record has changed and the rest is consistent."""
    if data.startswith(b"PK\3\4") and chance.random() < 0.6:
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = [(info.filename, archive.read(info)) for info in archive.infolist()]
            at = next((i for i, (name, _) in enumerate(records) if name.endswith(".pkl")), 0)
            at = at if chance.random() < 0.9 else chance.randrange(len(records))
            name, content = records[at]
            records[at] = name, changed(content, chance, other)
            method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            return zipped(records, method)
    return changed(data, chance, other)


def zipped(records: list[tuple[str, bytes]], method: int) -> bytes:
    """Return a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in records:
            archive.writestr(name, content)
    return buffer.getvalue()


def changed(data: bytes, chance: random.Random, other: Path) -> bytes:
    """Return bytes with one to four changes, most of them near the start or the end."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = place(len(out), chance)
        match chance.randrange(7):
            case 0:
                out[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                out[at : at + 1] = bytes([out[at] ^ 1 << chance.randrange(8)]) if out else b"\0"
            case 2:
                del out[at:]
            case 3:
                del out[at : at + chance.randint(1, 40)]
            case 4:
                out[at:at] = chance.choice(WILD) * chance.choice((1, 1, 1, 50))
            case 5:
                wild = chance.choice(WILD)
                out[at : at + len(wild)] = wild
            case _:
                donor = other.read_bytes()
                start = place(len(donor), chance)
                out[at:at] = donor[start : start + chance.randint(1, 2000)]
    return bytes(out)


def place(size: int, chance: random.Random) -> int:
    """Return where to change something in so many bytes."""
    if size < 2:
        return 0
    near = min(size - 1, 400)
    return chance.choice(
        (chance.randrange(size), chance.randrange(near), size - 1 - chance.randrange(near))
    )


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    if mode == "files":
        run_files(Path(where))
    else:
        run_mutations(Path(where), int(rest[0]), rest[1])
