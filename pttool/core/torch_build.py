"""What the installed torch was built for, read from its files: torch is not imported."""

import ast
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """The installed torch: versions are None where it was built without, or does not say."""

    path: Path
    version: str | None
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    debug: bool = False


def torch_build() -> TorchBuild | None:
    """Return the torch that `import torch` would find, or None where there is none."""
    folder = package_folder("torch")
    if folder is None:
        return None
    values = assigned_constants(folder / "version.py")
    version = values.get("__version__") or installed_version("torch")
    return TorchBuild(
        path=folder,
        version=version,
        cuda=values.get("cuda"),
        hip=values.get("hip"),
        xpu=values.get("xpu"),
        debug=values.get("debug") == "True",
    )


def package_folder(name: str) -> Path | None:
    """Return the folder of the package that `import NAME` would find, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # of a finder of an editable installation that has gone
        return None
    locations = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(locations))) if locations else None


def assigned_constants(source: Path) -> dict[str, str]:
    """Return the names that a Python file gives a constant other than None, and that as text."""
    try:
        module = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}
    for node in module.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant):
                found[target.id] = str(node.value.value)
    return {name: text for name, text in found.items() if text != "None"}


def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution from its metadata, or None where it isn't installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    except KeyError:  # metadata without a version, as an interrupted installation leaves
        return None
