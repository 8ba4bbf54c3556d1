"""`pttool env` against torch's own collector of what a bug report needs.

Whole processes, with all that they start. Run as `python -m benchmarks.env`.
"""

import sys
from pathlib import Path

from benchmarks.measure import cost

PTTOOL = str(Path(sys.executable).with_name("pttool"))
COMMANDS = {
    "python -m torch.utils.collect_env": [sys.executable, "-m", "torch.utils.collect_env"],
    "python -c 'import torch'": [sys.executable, "-c", "import torch"],
    "pttool env": [PTTOOL, "env"],
}


def main() -> None:
    """Print one row per command."""
    costs = {name: cost(command, rounds=5) for name, command in COMMANDS.items()}
    theirs = costs["python -m torch.utils.collect_env"]
    print(f"{'command':<36}{'CPU s':>8}{'ratio':>8}{'wall s':>8}{'ratio':>8}{'MiB':>7}")
    for name, spent in costs.items():
        print(
            f"{name:<36}{spent.cpu_s:>8.2f}{theirs.cpu_s / spent.cpu_s:>7.1f}x"
            f"{spent.wall_s:>8.2f}{theirs.wall_s / spent.wall_s:>7.1f}x"
            f"{spent.peak_bytes / 2**20:>7.0f}"
        )


if __name__ == "__main__":
    main()
