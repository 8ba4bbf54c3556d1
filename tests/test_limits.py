"""The size limits of DESIGN: what a reader can hold in mind."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "pttool").rglob("*.py"))
LONGEST_FILE = 300
LONGEST_FUNCTION = 40


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(source: Path) -> None:
    text = source.read_text()
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert _body_lines(node) <= LONGEST_FUNCTION, node.name


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its signature and docstring, which are for reading."""
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = node.body[1:] if is_docstring else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
