"""Completion scripts for four shells, written ahead so that a Tab never starts Python."""

from collections.abc import Sequence

from pttool.completion import bash, fish, powershell, zsh
from pttool.completion.tree import Command

SHELLS = {
    "pttool.bash": bash.script,
    "_pttool": zsh.script,
    "pttool.fish": fish.script,
    "pttool.ps1": powershell.script,
}


def scripts(root: Command, models: Sequence[str], timm: Sequence[str]) -> dict[str, str]:
    """Return the text of every file of completions/ by its name; timm's names are without timm:."""
    return {name: script(root, models, timm) for name, script in SHELLS.items()}
