"""Where /proc, /sys and /dev are: a test moves their root with PTTOOL_SYSROOT."""

import os
from pathlib import Path


def rooted(path: str) -> Path:
    """Return an absolute path of the system, below PTTOOL_SYSROOT where that is set."""
    root = os.environ.get("PTTOOL_SYSROOT", "")
    return Path(root, path.lstrip("/")) if root else Path(path)
