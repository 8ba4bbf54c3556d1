"""`pttool profile` against the same script bare, and its op table against torch's key_averages.

Three promises: outside its window of ops the recorder costs at most 2 % of CPU; a run of 10,000
steps needs at most 1.15 times the memory of the bare one plus 60 MB, with a trace of at most 20 MB;
the op table takes at most half the CPU of key_averages. Bare and profiled runs take turns, and the
ratio is the median of those of the pairs. Run as `python -m benchmarks.profile [--rounds N]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torchvision.models import resnet18

from benchmarks.scripts.training_loop import WARM_UP
from pttool.core.profile.ops import op_table

PYTHON, PTTOOL = sys.executable, str(Path(sys.executable).with_name("pttool"))
LOOP = str(Path(__file__).parent / "scripts" / "training_loop.py")
LONG_RUN = 10_000


def main() -> None:
    """Print one row per measurement, each with its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    os.environ["KINETO_LOG_LEVEL"] = "99"
    print(f"{'what':<44}{'own':>12}{'reference':>12}{'ratio':>9}  limit")
    with tempfile.TemporaryDirectory() as folder:
        recorder_overhead(Path(folder), rounds)
        long_run(Path(folder))
        table(Path(folder), rounds)


def recorder_overhead(folder: Path, rounds: int) -> None:
    """Print the CPU of a step outside the window, with the recorder and without."""
    for net, steps, limit in (("cnn", 120, "1.02"), ("tiny", 3020, "-")):
        pairs = [(_profiled(folder, net, steps), _bare(folder, net, steps)) for _ in range(rounds)]
        own, bare = (median(run["cpu_s"] for run in side) for side in zip(*pairs, strict=True))
        ratio = median(ours["cpu_s"] / theirs["cpu_s"] for ours, theirs in pairs)
        each = 1e3 / (steps - WARM_UP)
        row(f"CPU ms of a step, {net}", each * own, each * bare, ratio, limit)


def long_run(folder: Path) -> None:
    """Print the peak memory of many steps, and the size of the trace."""
    trace = folder / "trace.json"
    own = _profiled(folder, "tiny", LONG_RUN, "--trace", str(trace))["peak_bytes"] / 2**20
    bare = _bare(folder, "tiny", LONG_RUN)["peak_bytes"] / 2**20
    limit = f"{1.15 * bare + 60:.0f} MiB"
    row(f"peak MiB of {LONG_RUN:,} steps", own, bare, own / bare, limit)
    print(f"{'MB of its trace':<44}{trace.stat().st_size / 1e6:>12.2f}{'':>21}  20 MB")


def table(folder: Path, rounds: int) -> None:
    """Print the CPU from a closed window to its op table; ours exports a trace and reads it."""
    net, images = resnet18(), torch.randn(1, 3, 64, 64)
    ours, theirs = [], []
    for _ in range(rounds):
        with profile(
            activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True
        ) as profiler:
            for _ in range(3):
                net(images).sum().backward()
        ours.append(_cpu_s(partial(_own_table, profiler, folder / "window.json")))
        theirs.append(_cpu_s(profiler.key_averages))
    ratio = median(own / other for own, other in zip(ours, theirs, strict=True))
    row("CPU ms of the op table, resnet18", 1e3 * median(ours), 1e3 * median(theirs), ratio, "0.5")


def row(what: str, own: float, reference: float, ratio: float, limit: str) -> None:
    """Print one line."""
    print(f"{what:<44}{own:>12.2f}{reference:>12.2f}{ratio:>8.3f}x  {limit}", flush=True)


def _own_table(profiler: Any, trace: Path) -> None:
    profiler.export_chrome_trace(str(trace))
    op_table([trace])


def _cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _bare(folder: Path, net: str, steps: int) -> dict[str, float]:
    return _run([PYTHON], folder, net, steps)


def _profiled(folder: Path, net: str, steps: int, *options: str) -> dict[str, float]:
    return _run([PTTOOL, "profile", *options], folder, net, steps)


def _run(runner: list[str], folder: Path, net: str, steps: int) -> dict[str, float]:
    report = folder / "cost.json"
    command = [*runner, LOOP, net, str(steps), str(report)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cost: dict[str, float] = json.loads(report.read_text())
    return cost


if __name__ == "__main__":
    main()
