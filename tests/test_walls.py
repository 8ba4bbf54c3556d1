"""The walls of DESIGN: data travels one way, from the command line to core, never back."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "pttool" / "core").rglob("*.py"))
# What core may import of pttool besides itself.
OUTSIDE_CORE = ("pttool.errors",)
# What a noun may use of others: their public functions.
SHARED = {
    "features": {"model", "video"},
    "profile": {"model"},
    "ckpt": {"model"},
    "env": {"gpu"},
    "lr": {"plots"},
    "curve": {"plots"},
}


def _imports(source: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("source", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_core_knows_nothing_to_its_left(source: Path) -> None:
    imports = {name for name in _imports(source) if name.split(".")[0] == "pttool"}
    assert all(name.startswith("pttool.core") or name in OUTSIDE_CORE for name in imports)
    assert not {name.partition(".")[0] for name in _imports(source)} & {"typer", "rich"}


@pytest.mark.parametrize("source", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_one_noun_does_not_reach_into_another(source: Path) -> None:
    parts = source.relative_to(ROOT / "pttool" / "core").parts
    nouns = {path.name for path in (ROOT / "pttool" / "core").iterdir() if path.is_dir()}
    others = nouns - {parts[0]}
    reached = {name.split(".")[2] for name in _imports(source) if name.count(".") >= 2}
    assert not reached & others - SHARED.get(parts[0], set())
