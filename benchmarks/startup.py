"""What a pttool command costs before it does its work, against bare Python and `import typer`.

Run as `python -m benchmarks.startup`.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Cost, cost

PTTOOL = str(Path(sys.executable).with_name("pttool"))
COMPLETION = Path(__file__).parents[1] / "completions" / "pttool.bash"
COMPLETE = f"""
source {COMPLETION}
compopt() {{ :; }}
COMP_WORDS=(pttool model summary resnet1) COMP_CWORD=3
$(complete -p pttool | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"""
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import typer'": [sys.executable, "-c", "import typer"],
    "pttool --version": [PTTOOL, "--version"],
    "pttool --help": [PTTOOL, "--help"],
    "pttool model summery (usage error)": [PTTOOL, "model", "summery"],
    "pttool model params --help (cheap)": [PTTOOL, "model", "params", "--help"],
    "bash -c : (no completion)": ["bash", "-c", ":"],
    "one completion, bash": ["bash", "-c", COMPLETE],
}


def modules(command: list[str]) -> int | None:
    """Return how many modules a Python command imports, its own start included."""
    if command[0] == "bash":
        return None
    launched = [sys.executable, "-X", "importtime", *command[command[0] == sys.executable :]]
    done = subprocess.run(launched, capture_output=True, encoding="utf-8", check=False)
    return sum(line.startswith("import time:") for line in done.stderr.splitlines()) - 1


def main() -> None:
    """Print one row per command."""
    costs: dict[str, Cost] = {
        name: cost(command, expected=2 if "usage error" in name else 0)
        for name, command in COMMANDS.items()
    }
    bare, typer = costs["python -c pass"].cpu_s, costs["python -c 'import typer'"].cpu_s
    print(f"{'command':<36}{'modules':>8}{'CPU ms':>8}{'x python':>10}{'x typer':>9}{'MiB':>7}")
    for name, command in COMMANDS.items():
        spent = costs[name]
        print(
            f"{name:<36}{modules(command) or '-':>8}{spent.cpu_s * 1000:>8.1f}"
            f"{spent.cpu_s / bare:>10.2f}{spent.cpu_s / typer:>9.2f}"
            f"{spent.peak_bytes / 2**20:>7.1f}"
            + ("" if command[0] != "bash" else " (the caller's)")
        )


if __name__ == "__main__":
    main()
