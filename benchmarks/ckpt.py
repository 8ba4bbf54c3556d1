"""`ckpt` on a checkpoint of 4 GB: inspect, convert-cpu, strip-dataparallel, in place, verify.

Whole processes, in seconds of wall time: a disk is waited for, not computed on. The references are
torch.load in its fastest mode, `cp` of the same file (alone, and with the data forced to the disk,
as pttool does before it renames), and zlib.crc32 over the file. Run as
`python -m benchmarks.ckpt [--gigabytes N]`; the file is made in the folder for temporary files,
which needs room for three of it, and is removed again.
"""

import argparse
import compileall
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Cost, cost

PTTOOL = str(Path(sys.executable).with_name("pttool"))
ROUNDS = 3
MAKE = """
import sys, torch
path, gigabytes = sys.argv[1], float(sys.argv[2])
torch.serialization.location_tag = lambda storage: "cuda:0"
names = [f"module.layers.{index // 4}.{index % 4}.weight" for index in range(320)]
rows = int(gigabytes * 2**30 / 4 / 4096 / len(names))
tensors = {name: torch.randn(rows, 4096) for name in names}
torch.save({"epoch": 3, "state_dict": tensors, "args": {"device": "cuda:0"}}, path)
"""
LOAD = """
import sys, torch
torch.load(sys.argv[1], map_location=sys.argv[2], weights_only=True)
"""
CONVERT = """
import sys, torch
torch.save(torch.load(sys.argv[1], map_location="cpu", mmap=True, weights_only=True), sys.argv[2])
"""
CRC = """
import sys, zlib
total, buffer = 0, bytearray(1 << 20)
with open(sys.argv[1], "rb", buffering=0) as stream:
    while count := stream.readinto(buffer):
        total = zlib.crc32(memoryview(buffer)[:count], total)
"""


def main() -> None:
    """Make the file, run every row, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    asked = parser.parse_args()
    compileall.compile_dir(Path(__file__).parents[1] / "pttool", quiet=2)  # as installing does
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "gpu.pt"), Path(folder, "made.pt")
        cost([sys.executable, "-c", MAKE, str(source), str(asked.gigabytes)], rounds=1, warm=False)
        print(f"{source.stat().st_size / 1e9:.2f} GB in 320 tensors, {ROUNDS} rounds, medians")
        print(f"{'what':<34}{'wall s':>9}{'ratio':>9}{'MiB':>8}  against")
        reading(source)
        writing(source, made)
        in_place(source, made)


def reading(source: Path) -> None:
    """Print what inspecting and verifying cost."""
    meta = python(LOAD, source, "meta")
    inspect = cost([PTTOOL, "ckpt", "inspect", str(source)], rounds=ROUNDS)
    row("torch.load(map_location=meta)", meta)
    row("ckpt inspect", inspect, meta, "torch.load, times faster")
    row("torch.load(map_location=cpu)", python(LOAD, source, "cpu"))
    crc = python(CRC, source)
    row("zlib.crc32 over the file", crc)
    verify = cost([PTTOOL, "ckpt", "verify", str(source)], rounds=ROUNDS)
    row("ckpt verify", verify, crc, "zlib.crc32")


def writing(source: Path, made: Path) -> None:
    """Print what changed copies cost."""

    def clean() -> None:
        made.unlink(missing_ok=True)

    copy = cost(["cp", str(source), str(made)], rounds=ROUNDS, before=clean)
    script = f"cp '{source}' '{made}' && sync '{made}'"
    synced = cost(["sh", "-c", script], rounds=ROUNDS, before=clean)
    row("cp", copy)
    row("cp, then sync", synced)
    for verb in ("convert-cpu", "strip-dataparallel"):
        command = [PTTOOL, "ckpt", verb, str(source), "-o", str(made)]
        own = cost(command, rounds=ROUNDS, before=clean)
        row(f"ckpt {verb}", own, copy, "cp")
        row("", own, synced, "cp, then sync")
    loaded = cost(
        [sys.executable, "-c", CONVERT, str(source), str(made)], rounds=1, warm=False, before=clean
    )
    row("torch.load(mmap) + torch.save", loaded, copy, "cp")
    clean()


def in_place(source: Path, made: Path) -> None:
    """Print what changing the file itself costs."""

    def fresh() -> None:
        shutil.copyfile(source, made)
        os.sync()  # what is still to be written of the copy is not the verb's

    for verb in ("convert-cpu", "strip-dataparallel"):
        command = [PTTOOL, "ckpt", verb, str(made), "--in-place"]
        row(f"ckpt {verb} --in-place", cost(command, rounds=ROUNDS, before=fresh))


def python(script: str, *args: str | Path) -> Cost:
    """Return what a script in a Python of its own costs."""
    return cost([sys.executable, "-c", script, *map(str, args)], rounds=ROUNDS)


def row(what: str, own: Cost, reference: Cost | None = None, against: str = "") -> None:
    """Print one line; the ratio is that of wall times, above 1 where `own` is slower."""
    ratio = "-"
    if reference is not None:
        times = own.wall_s / reference.wall_s
        ratio = f"{1 / times if against.endswith('faster') else times:.2f}x"
    print(f"{what:<34}{own.wall_s:>9.3f}{ratio:>9}{own.peak_bytes / 2**20:>8.0f}  {against}")


if __name__ == "__main__":
    main()
