"""The start-up budget, counted in modules so that no timer is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "torchvision", "cv2", "av", "sklearn", "numpy", "torchinfo", "scipy", "rich"}
HEAVY |= {"pynvml", "matplotlib", "plotille", "tensorboard"}
CHECKPOINT = Path(__file__).parents[1] / "cases" / "ckpt" / "02-cuda-on-cpu-box" / "train_cuda.pt"
REPORT = """
import os, sys
from pttool.__main__ import main
sys.argv = ["pttool", *sys.argv[1:]]
real = os.dup(2)
for descriptor in (1, 2):
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
try:
    main()
except SystemExit:
    os.write(real, ' '.join(sys.modules).encode())
"""


def _modules(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *args], capture_output=True, check=True, timeout=60
    )
    return set(done.stderr.decode().split())


def _heavy(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} & HEAVY


@pytest.mark.parametrize(("option", "budget"), [("--version", 40), ("--help", 160)])
def test_the_budget_of_imported_modules(option: str, budget: int) -> None:
    """As -X importtime lists them, Python's own start included."""
    start = f"import sys; sys.argv = ['pttool', {option!r}]; import pttool.__main__ as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", start],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    imported = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert len(imported) - 1 <= budget


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
        ["lr", "table", "cosin", "--epochs", "3", "--lr", "1"],
    ],
    ids=" ".join,
)
def test_help_version_and_usage_errors_import_nothing_heavy(args: list[str]) -> None:
    assert _heavy(_modules(*args)) == set()


@pytest.mark.parametrize("verb", ["params", "summary"])
def test_a_published_model_needs_no_compiler(verb: str) -> None:
    """torch._dynamo, torch.compile's front end, is 900 modules and a second."""
    assert "torch._dynamo" not in _modules("model", verb, "resnet18", "--json")


@pytest.mark.parametrize(
    "args",
    [
        ["inspect"],
        ["inspect", "--tree", "--json"],
        ["convert-cpu", "--dry-run"],
        ["strip-dataparallel", "--dry-run"],
        ["scan"],
        ["verify"],
    ],
    ids=" ".join,
)
def test_a_checkpoint_needs_neither_torch_nor_numpy(args: list[str]) -> None:
    verb, *options = args
    modules = _modules("ckpt", verb, str(CHECKPOINT), *options)
    assert _heavy(modules) <= {"rich"}
    assert not {"pickle", "zipfile", "tarfile"} & modules


def test_a_plot_in_the_terminal_needs_its_library_alone(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 0, "loss": 2.5}\n{"epoch": 1, "loss": 1.5}\n')
    assert _heavy(_modules("curve", str(log))) == {"plotille"}
