"""A script that is recorded writes, returns and sees what it does under plain Python."""

import re
import sys
from pathlib import Path

import pytest

from pttool.core.profile.reading import read_recording

from .fidelity_scripts import WITH_TORCH, WITHOUT_TORCH, Script
from .running import ended, recorded, run

SCRIPTS = WITHOUT_TORCH | WITH_TORCH
# What differs between two runs of plain Python: addresses and process ids.
VOLATILE = re.compile(rb"0x[0-9a-f]{6,}|\b\d{14,}\b|(?<=pid )\d+|pymp-\w+")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_recorded_script_is_the_script(
    name: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    script = SCRIPTS[name]
    given = {**environment, "PYTHONHASHSEED": "0", **script.environment}
    arguments = _laid_out(script, tmp_path)
    plain = run([sys.executable, *arguments], tmp_path, given)
    folder = tmp_path.parent / f"{tmp_path.name}-record"
    traced = run(recorded(arguments, folder), tmp_path, given)
    assert VOLATILE.sub(b"*", traced.stdout) == VOLATILE.sub(b"*", plain.stdout)
    assert VOLATILE.sub(b"*", traced.stderr) == VOLATILE.sub(b"*", plain.stderr)
    assert traced.returncode == _as_a_shell_tells(plain.returncode)
    assert ended(folder).returncode == plain.returncode
    main = read_recording(folder, ended(folder).pid).main
    if name in WITH_TORCH:
        assert main is not None
        assert main.is_final
        assert [note for note in main.notes if "failed" in note] == []


def _laid_out(script: Script, folder: Path) -> list[str]:
    for name, text in script.beside.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    if script.module is not None:
        return ["-m", script.module, *script.arguments]
    (folder / "script.py").write_text(script.source)
    return ["script.py", *script.arguments]


def _as_a_shell_tells(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode
