"""Colour and terminals: who wins, and that data is never touched by it."""

import re

import pexpect
import pytest

from tests.conftest import PTTOOL, Program

PARAMS = ["model", "params", "squeezenet1_1"]
ESCAPE = "\x1b"


@pytest.mark.parametrize("format", ["--json", "--ndjson", "--csv", "--tsv"])
def test_data_is_never_coloured(program: Program, format: str) -> None:
    forced = {"FORCE_COLOR": "1", "GITHUB_ACTIONS": "true"}
    assert ESCAPE not in program(*PARAMS, format, env=forced).stdout


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False),
        ({"GITHUB_ACTIONS": "true"}, False),
    ],
    ids=str,
)
def test_a_piped_table_is_coloured_only_on_demand(
    program: Program, env: dict[str, str], coloured: bool
) -> None:
    assert (ESCAPE in program(*PARAMS, env={"TERM": "xterm", **env}).stdout) == coloured


@pytest.mark.parametrize("args", [["--help"], ["model", "--help"], ["model", "summary", "--help"]])
def test_help_is_never_coloured(program: Program, args: list[str]) -> None:
    done = program(*args, env={"FORCE_COLOR": "1", "GITHUB_ACTIONS": "true"})
    assert done.returncode == 0
    assert ESCAPE not in done.stdout
    assert done.stdout.isascii()


@pytest.mark.parametrize(("width", "shows_kernel"), [(120, True), (60, False)])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_terminal_gets_a_tree_that_fits_it(
    environment: dict[str, str], width: int, shows_kernel: bool
) -> None:
    terminal = pexpect.spawn(
        PTTOOL,
        ["model", "summary", "squeezenet1_1", "-i", "3,224,224", "--depth", "1"],
        env={**environment, "TERM": "xterm"},
        dimensions=(60, width),
        encoding="utf-8",
        timeout=60,
    )
    text = terminal.read()
    terminal.close()
    assert terminal.exitstatus == 0
    assert "1,235,496" in text
    assert "  features " in text
    assert ("Kernel" in text.splitlines()[0]) == shows_kernel
    assert ("too narrow for" in text) == (not shows_kernel)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= width
