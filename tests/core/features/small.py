"""A small network in a file, small pictures, and the request to extract features from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pttool.core.features.extract import extract
from pttool.core.features.requests import ModelRequest, Request, Running, Sharing, Target
from pttool.core.model.spec import FileModel
from pttool.core.report import Report

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 9, stride=16)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 3)

    def forward(self, pictures):
        return self.head(self.relu(self.conv(pictures)).mean((2, 3)))
"""
LAYERS = ("conv", "head")


def made(folder: Path, count: int, broken: Sequence[int] = ()) -> Path:
    """Write net.py, and pictures 0.png, 1.png ..., of which some are empty files; return `folder`.

    No two pictures are alike.
    """
    (folder / "net.py").write_text(NET)
    (folder / "pictures").mkdir()
    random = np.random.default_rng(0)
    for number in range(count):
        picture = Image.fromarray(random.integers(0, 256, (6, 8, 3), dtype=np.uint8))
        path = folder / "pictures" / f"{number}.png"
        path.touch() if number in broken else picture.save(path)
    return folder


def request(folder: Path, *, batch_size: int = 2, part_size: int = 4, **running: Any) -> Request:
    """Return the request for the layers conv and head of the network, for all pictures."""
    return Request(
        [folder / "pictures"],
        LAYERS,
        ModelRequest(FileModel(folder / "net.py", "Net"), "net.py:Net"),
        Running(batch_size=batch_size, **running),
        part_size=part_size,
    )


def extracted(asked: Request, out: Path, sharing: Sharing | None = None, **target: Any) -> Report:
    """Extract to a folder, in one process unless `sharing` says otherwise."""
    one = Sharing(processes=1)
    return extract(asked, sharing or one, Target(out, **target), progress=lambda *_: None)


def tree(folder: Path) -> Mapping[str, bytes]:
    """Return every file below a folder, hidden ones too."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
