"""The start-up budget, counted in modules so that no timer is needed."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "torchvision", "cv2", "av", "sklearn", "numpy", "torchinfo", "scipy", "rich"}
REPORT = """
import json, os, sys
from pttool.__main__ import main
sys.argv = ["pttool", *sys.argv[1:]]
real = os.dup(2)
for descriptor in (1, 2):
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
try:
    main()
except SystemExit:
    os.write(real, json.dumps(sorted(sys.modules)).encode())
"""


def _modules(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *args], capture_output=True, check=True, timeout=60
    )
    return set(json.loads(done.stderr))


def _heavy(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} & HEAVY


def test_version_imports_next_to_nothing() -> None:
    # json, which only this test needs, brings its own.
    alone = _modules_of("import json")
    assert len(_modules("--version") - alone) + len(_modules_of("pass")) <= 40


def test_help_stays_within_its_budget() -> None:
    alone = _modules_of("import json")
    assert len(_modules("--help") | _modules_of("pass")) <= 160 + len(
        {module for module in alone if module.startswith("json")}
    )


@pytest.mark.parametrize(
    "args",
    [
        ["--version"],
        ["--help"],
        [],
        ["model", "--help"],
        ["model", "summary", "--help"],
        ["no-such-command"],
        ["model", "summary", "--no-such-option"],
        ["model", "summary", "resnet18", "-i", "3,x,224"],
        ["model", "summary", "resnet18", "--columns", "nonsense"],
        ["model", "params", "resnet18", "--json", "--csv"],
    ],
    ids=" ".join,
)
def test_help_version_and_usage_errors_import_nothing_heavy(args: list[str]) -> None:
    assert _heavy(_modules(*args)) == set()


def _modules_of(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return set(done.stdout.split())
