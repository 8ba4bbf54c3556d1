"""`features extract` against the pure forward pass, its memory, and random reads of what it writes.

The ceiling is the pure forward of resnet18 on one batch in memory, at the best split of two cores
into processes and threads. Rows are run in turn, ROUNDS times; images/s are medians: those that
the command reports (decode, transform, forward, write), and those of its whole process, which also
imports torch. The peak memory is that of a small network over few and over many small pictures.

Run as `python -m benchmarks.features [--images N] [--many N]`, on a machine with nothing else to
do; JPEGs of 500 x 375 are made in the folder for temporary files, and removed again.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

from benchmarks.measure import cost

PTTOOL = str(Path(sys.executable).with_name("pttool"))
ROUNDS, BATCH = 5, 32
DISTINCT, FEW = 100, 1000
ROWS, WIDTH, READS = 50_000, 512, 1000
FORWARD = """
import sys, torch, torchvision
threads, count, batch, dtype = *map(int, sys.argv[1:4]), getattr(torch, sys.argv[4])
torch.set_num_threads(threads)
layout = torch.channels_last if dtype == torch.bfloat16 else torch.contiguous_format
model = torchvision.models.resnet18().eval().to(dtype=dtype, memory_format=layout)
pictures = torch.randn(batch, 3, 224, 224).to(dtype=dtype, memory_format=layout)
with torch.inference_mode():
    model(pictures)
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(count // batch):
        model(pictures)
print("done", flush=True)
"""
NETWORK = """
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 8, 7, stride=16), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
"""
EXTRACT = ["features", "extract", "resnet18", "-l", "avgpool", "--weights", "none"]
RECIPE = ["--imagenet-val", "--batch-size", str(BATCH)]
Rate = tuple[float, float | None]  # images/s as reported, and of the whole process


def main() -> None:
    """Make the pictures, run every row, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--many", type=int, default=100_000)
    asked = parser.parse_args()
    compileall.compile_dir(Path(__file__).parents[1] / "pttool", quiet=2)  # as installing does
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pictures = made(folder / "pictures", asked.images, (500, 375))
        print(f"resnet18, {asked.images} JPEGs of 500 x 375, {os.cpu_count()} cores")
        speed("float32", [], pictures, asked.images)
        speed("bfloat16", ["--dtype", "bf16", "--channels-last"], pictures, asked.images)
        memory(folder, asked.many)
        reads(folder)


def made(folder: Path, count: int, size: tuple[int, int]) -> Path:
    """Return a folder of so many JPEGs, of which DISTINCT differ and the others are links."""
    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(min(count, DISTINCT)):
        coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC)).astype(np.int16)
        grain = random.integers(-12, 13, smooth.shape)
        picture = Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
        picture.save(folder / f"{number}.jpg", quality=90)
    for number in range(DISTINCT, count):
        os.link(folder / f"{number % DISTINCT}.jpg", folder / f"{number}.jpg")
    return folder


def speed(dtype: str, flags: Sequence[str], pictures: Path, images: int) -> None:
    """Print images/s of the pure forward and of the command, in one process and in two."""

    def pure(processes: int, threads: int) -> Callable[[], Rate]:
        return lambda: (forward(processes, threads, images, dtype), None)

    def command(*split: str) -> Callable[[], Rate]:
        return lambda: extract([*flags, *split], pictures, images)

    rows: Mapping[str, Callable[[], Rate]] = {
        "pure forward, 1 process x 2 threads": pure(1, 2),
        "pure forward, 2 processes x 1 thread": pure(2, 1),
        "extract -j 1 --threads 2": command("-j", "1", "--threads", "2"),
        "extract -j 2": command("-j", "2"),
    }
    rates: dict[str, list[Rate]] = {row: [] for row in rows}
    for _ in range(ROUNDS):
        for row, measure in rows.items():
            rates[row].append(measure())
    reported = {row: median(rate for rate, _ in found) for row, found in rates.items()}
    ceiling = max(rate for row, rate in reported.items() if row.startswith("pure"))
    print(f"\n{dtype:<38}{'images/s':>9}{'ratio':>8}{'whole process':>15}")
    for row, found in rates.items():
        whole = [rate for _, rate in found if rate is not None]
        last = f"{median(whole):>15.1f}" if whole else ""
        print(f"{row:<38}{reported[row]:>9.1f}{reported[row] / ceiling:>8.2f}{last}")


def forward(processes: int, threads: int, images: int, dtype: str) -> float:
    """Return the images/s of processes that do nothing but the forward, from a common start."""
    share = images // processes // BATCH * BATCH
    command = [sys.executable, "-c", FORWARD, *map(str, (threads, share, BATCH)), dtype]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    running = [
        subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    for process in running:
        _await(process, "ready")
    start = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        _await(process, "done")
    spent = time.perf_counter() - start
    for process in running:
        process.communicate()
    return processes * share / spent


def _await(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said != word:
        raise RuntimeError(f"{word} was awaited, not {said!r}")


def extract(options: Sequence[str], pictures: Path, images: int) -> Rate:
    """Return the images/s of the command: as it reports them, and of its whole process."""
    with tempfile.TemporaryDirectory() as out:
        command = [PTTOOL, *EXTRACT, str(pictures), "-o", f"{out}/made", *RECIPE, *options]
        start = time.perf_counter()
        done = subprocess.run(
            [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        whole = images / (time.perf_counter() - start)
    return float(json.loads(done.stdout)["summary"]["images_per_s"]), whole


def memory(folder: Path, many: int) -> None:
    """Print the peak memory of one process over few and over many pictures of 64 x 64."""
    (folder / "net.py").write_text(NETWORK)
    print(f"\n{'small network, pictures of 64 x 64':<38}{'MiB':>9}{'wall s':>8}")
    for count in (FEW, many):
        pictures = made(folder / str(count), count, (64, 64))
        with tempfile.TemporaryDirectory() as out:
            command = [
                PTTOOL, "features", "extract", f"{folder}/net.py:net", str(pictures), "-l", "2",
                "--weights", "none", "-o", f"{out}/made", *RECIPE, "-j", "1",
            ]  # fmt: skip
            spent = cost(command, rounds=1, warm=False)
        print(f"{count:<38}{spent.peak_bytes / 2**20:>9.0f}{spent.wall_s:>8.1f}")


def reads(folder: Path) -> None:
    """Print what random rows cost of an .npy opened by mmap, and of an .npz."""
    array = np.random.default_rng(0).random((ROWS, WIDTH), dtype=np.float32)
    np.save(folder / "rows.npy", array)
    np.savez(folder / "rows.npz", array)
    rows = np.random.default_rng(1).integers(0, ROWS, READS)
    mapped, loaded = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        of_npy = np.load(folder / "rows.npy", mmap_mode="r")[rows]
        middle = time.perf_counter()
        of_npz = np.load(folder / "rows.npz")["arr_0"][rows]
        loaded.append(time.perf_counter() - middle)
        mapped.append(middle - start)
        assert (of_npy == of_npz).all()
    print(f"\n{READS} random rows of {ROWS} x {WIDTH} float32")
    print(f"{'merged .npy by mmap':<38}{median(mapped) * 1e3:>9.1f} ms")
    print(f"{'.npz':<38}{median(loaded) * 1e3:>9.1f} ms{median(loaded) / median(mapped):>8.0f}x")


if __name__ == "__main__":
    main()
