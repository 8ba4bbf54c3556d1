"""A machine with ten GPUs, shown once: pttool against nvitop and gpustat, on the fake driver.

Each is a whole process that shows every GPU and the processes there, after one run that isn't
counted, in turns; the ratios say how many times pttool's CPU and wall time a tool takes (gpustat
sleeps to see how busy a process is). The driver is the tests' fake NVML, so that only the tools are
compared: a real one takes its own time from each.

Run as `python -m benchmarks.gpu [--peers VENV]`. The others are looked for in an environment of
their own, which `python -m venv VENV && VENV/bin/pip install nvitop gpustat` makes; one that isn't
there has no row. It takes a C compiler.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.measure import Cost, cost
from tests.fakes.nvml.build import build
from tests.fakes.nvml.scenarios import gpu, machine

PTTOOL = str(Path(sys.executable).with_name("pttool"))
ROUNDS = 15
GPUS = 10
HEAD = f"{'command':<20}{'CPU ms':>8}{'wall ms':>9}{'MiB':>7}{'x CPU':>8}{'x wall':>8}"


def main() -> None:
    """Print one row per tool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", type=Path, default=Path("venv-peers"), metavar="VENV")
    bin = parser.parse_args().peers / "bin"
    commands = {
        "pttool gpu info": [PTTOOL, "gpu", "info"],
        "pttool gpu pick": [PTTOOL, "gpu", "pick"],
        "nvitop -1": [str(bin / "nvitop"), "-1"],
        "gpustat": [str(bin / "gpustat")],
    }
    there = {name: words for name, words in commands.items() if Path(words[0]).exists()}
    with tempfile.TemporaryDirectory() as folder:
        _become_machine(Path(folder))
        spent = _in_turns(there)
    print(HEAD)
    for name, each in spent.items():
        own = spent["pttool gpu info"]
        print(
            f"{name:<20}{each.cpu_s * 1000:>8.0f}{each.wall_s * 1000:>9.0f}"
            f"{each.peak_bytes / 2**20:>7.0f}{each.cpu_s / own.cpu_s:>8.2f}"
            f"{each.wall_s / own.wall_s:>8.2f}"
        )


def _become_machine(folder: Path) -> None:
    """Let this process's children see ten GPUs, of which every other one computes."""
    job = {"util": "99,50", "procs": f"{os.getpid()}:40000"}
    scenario = folder / "ten.fake"
    scenario.write_text(
        machine([gpu(index, **(job if index % 2 else {})) for index in range(GPUS)])
    )
    library = build(folder)
    os.environ |= {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML": str(scenario)}


def _in_turns(commands: dict[str, list[str]]) -> dict[str, Cost]:
    """Return each command's median times and largest memory; what else runs is felt by all."""
    rounds = [
        {name: cost(words, rounds=1, warm=number == 0) for name, words in commands.items()}
        for number in range(ROUNDS)
    ]
    return {
        name: Cost(
            median(each[name].cpu_s for each in rounds),
            max(each[name].peak_bytes for each in rounds),
            median(each[name].wall_s for each in rounds),
        )
        for name in commands
    }


if __name__ == "__main__":
    main()
