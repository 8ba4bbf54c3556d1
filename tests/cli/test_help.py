"""Every command has a help text with examples, a row in the README, and a golden copy."""

import os
import re
from pathlib import Path

import pytest

from pttool.cli import COMMANDS, build
from pttool.completion.tree import command_tree
from tests.conftest import Pttool

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


COMMANDS_BELOW = list(command_tree(build(list(COMMANDS))).walk())
PATHS = [list(command.path[1:]) for command in COMMANDS_BELOW]
# What does something: the verbs, and the nouns that are commands themselves.
RUNNABLE = [
    list(command.path[1:])
    for command in COMMANDS_BELOW
    if command.arguments or not command.commands
]


def _help(pttool: Pttool, path: list[str]) -> str:
    done = pttool(*path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("path", PATHS, ids=lambda path: " ".join(path) or "root")
def test_help_is_the_golden_one(pttool: Pttool, path: list[str]) -> None:
    golden = GOLDEN / f"{'-'.join(['pttool', *path])}.txt"
    text = _help(pttool, path)
    if os.environ.get("PTTOOL_REWRITE_GOLDEN"):
        golden.write_text(text)
    assert _unbraced(text) == _unbraced(golden.read_text()), "make generate rewrites it"


def _unbraced(text: str) -> str:
    """Newer Typers put braces around a required argument."""
    return re.sub(r"\{([A-Z.]+)\}", r"\1", text)


def test_every_noun_is_listed_with_its_line(pttool: Pttool) -> None:
    text = _help(pttool, [])
    for noun, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {noun} +{re.escape(line)}$", text, re.MULTILINE)
    assert "Exit codes:" in text


@pytest.mark.parametrize("path", RUNNABLE, ids=" ".join)
def test_every_command_has_help_examples_and_a_readme_row(pttool: Pttool, path: list[str]) -> None:
    text = _help(pttool, path)
    command = " ".join(["pttool", *path])
    assert re.search(rf"Examples:\n( +.*{command}.*\n)+", text)
    assert command in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", [[], ["model"]], ids=["root", "noun"])
def test_no_verb_shows_the_help(pttool: Pttool, path: list[str]) -> None:
    assert pttool(*path).stdout == pttool(*path, "--help").stdout


def test_version_is_one_line(pttool: Pttool) -> None:
    done = pttool("--version")
    assert re.fullmatch(r"pttool \d+\.\d+\.\d+\n", done.stdout)
