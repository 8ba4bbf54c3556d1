"""`model summary` against torchinfo, and of a model too large for the machine.

Each tool runs in a process of its own, and says what CPU time building, running and rendering took
after its imports, and what the whole process took. Run as `python -m benchmarks.model`; torchinfo
comes with the extra `dev`.
"""

import json
import subprocess
import sys
from pathlib import Path

STACK = Path(__file__).with_name("transformer_stack.py")
OURS = """
import json, resource, sys, time
from pttool.core.model import published
from pttool.core.model.resolve import resolve
from pttool.core.model.spec import parse_input, parse_model
from pttool.core.model.summary import summary
from pttool.tables import Paper, table
name, shape = sys.argv[1:]
published.torchvision()
import rich.cells, sympy  # torch imports sympy in its first check on meta
start = time.process_time()
report = summary(resolve(parse_model(name), {}, name=name), [parse_input(shape)])
rows = sum(map(len, table(report, True, Paper("utf-8"))))
spent = time.process_time() - start
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu_s": spent, "whole_s": usage.ru_utime + usage.ru_stime,
                  "peak": usage.ru_maxrss * 1024, "params": report.summary["params"],
                  "macs": report.summary["macs"]}))
"""
THEIRS = """
import json, resource, sys, time
import torch, torchinfo, torchvision
name, shape = sys.argv[1:]
start = time.process_time()
model = torchvision.models.get_model(name)
size = (1, *map(int, shape.split(",")))
found = torchinfo.summary(model, size, verbose=0, depth=9)
text = str(found)
spent = time.process_time() - start
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu_s": spent, "whole_s": usage.ru_utime + usage.ru_stime,
                  "peak": usage.ru_maxrss * 1024, "params": found.total_params,
                  "macs": int(found.total_mult_adds)}))
"""


def run(script: str, *args: str) -> dict[str, float]:
    """Run a script in its own process and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, check=True, encoding="utf-8"
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Print one row per model and tool."""
    print(
        f"{'model':<22}{'tool':<11}{'CPU s':>8}{'ratio':>8}{'whole s':>9}{'MiB':>8}"
        f"{'params':>18}{'MACs':>20}"
    )
    for name, shape in (("resnet152", "3,224,224"), ("vit_h_14", "3,224,224")):
        ours, theirs = run(OURS, name, shape), run(THEIRS, name, shape)
        print_row(name, "pttool", ours, theirs["cpu_s"] / ours["cpu_s"])
        print_row(name, "torchinfo", theirs, 1.0)
    stack = run(OURS, f"{STACK}:Decoder", "int64:2048")
    print_row("65-billion decoder", "pttool", stack, None)


def print_row(model: str, tool: str, result: dict[str, float], ratio: float | None) -> None:
    """Print what one tool took for one model."""
    print(
        f"{model:<22}{tool:<11}{result['cpu_s']:>8.2f}"
        f"{'-' if ratio is None else f'{ratio:.1f}x':>8}{result['whole_s']:>9.2f}"
        f"{result['peak'] / 2**20:>8.0f}"
        f"{int(result['params']):>18,}{int(result['macs']):>20,}"
    )


if __name__ == "__main__":
    main()
