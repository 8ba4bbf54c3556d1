"""Check that a wheel holds what an installation needs: code, data and completions in their places.

Run as `python tests/check_wheel.py WHEEL`.
"""

import sys
import zipfile
from pathlib import Path

WANTED = (
    "pttool/__main__.py",
    "pttool/py.typed",
    "pttool/commands/model.py",
    "pttool/data/model_names.txt",
    "pttool/data/timm_names.txt",
    "pttool/data/torch_globals.txt",
    "share/bash-completion/completions/pttool",
    "share/zsh/site-functions/_pttool",
    "share/fish/vendor_completions.d/pttool.fish",
    "share/pttool/pttool.ps1",
)


def missing(wheel: Path) -> list[str]:
    """Return the wanted files that no entry of the wheel ends in."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return [wanted for wanted in WANTED if not any(name.endswith(wanted) for name in names)]


if __name__ == "__main__":
    lacking = missing(Path(sys.argv[1]))
    sys.exit(f"the wheel lacks {', '.join(lacking)}" if lacking else 0)
