"""Frames of a video by number: pttool against torchcodec, decord, cv2 and ffmpeg.

Films of 60 s and of 10 min (720p, H.264, a keyframe every 250 frames, 3 B-frames between) whose
pictures carry their number: each tool is asked for the middles of 8 and of 25 segments, decodes
with one thread, in a process of its own, and each picture it gives is read. The CPU time is that of
opening the file and getting the pictures, after the imports; the peak is that of the whole process;
the ratio says how many times pttool's CPU time a tool takes, in the same rounds. Below stand the
packet scan alone, whole commands, and how much faster two workers are than one.

Run as `python -m benchmarks.video [--peers FOLDER]`. torchcodec and decord are looked for in
FOLDER, where `pip install --no-deps --target FOLDER torchcodec decord` puts them (torchcodec also
needs the shared libraries of FFmpeg); a tool that isn't there has no row.
"""

import argparse
import compileall
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Cost, cost

PTTOOL = str(Path(sys.executable).with_name("pttool"))
ROUNDS = 3
FRAMES, COPIES, SMALL = 1500, 10, 256
SEGMENTS = (8, 25)
HEAD = """
import json, sys, time
import numpy as np
path, ordinals = sys.argv[1], json.loads(sys.argv[2])
"""
TAIL = """
spent = time.process_time() - start
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
from tests.core.video.barcode import read
print(json.dumps([spent, peak / 1024, [read(picture) for picture in pictures]]))
"""
TOOLS = {
    "pttool": """
from functools import partial
from pathlib import Path
from pttool.core.video.decode import open_video
start = time.process_time()
with open_video(Path(path)) as video:
    assert len(video.index)
    pictures = [picture.rgb.copy() for picture in video.pictures(ordinals)]
""",
    "torchcodec": """
import torch
from torchcodec.decoders import VideoDecoder
torch.set_num_threads(1)
start = time.process_time()
decoder = VideoDecoder(path, dimension_order="NHWC", num_ffmpeg_threads=1)
pictures = decoder.get_frames_at(ordinals).data.numpy()
""",
    "torchcodec, approximate": """
import torch
from torchcodec.decoders import VideoDecoder
torch.set_num_threads(1)
start = time.process_time()
decoder = VideoDecoder(
    path, dimension_order="NHWC", num_ffmpeg_threads=1, seek_mode="approximate"
)
pictures = decoder.get_frames_at(ordinals).data.numpy()
""",
    "decord": """
import decord
start = time.process_time()
pictures = decord.VideoReader(path, num_threads=1).get_batch(ordinals).asnumpy()
""",
    "cv2, seek": """
import cv2
start = time.process_time()
capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
pictures = []
for ordinal in ordinals:
    capture.set(cv2.CAP_PROP_POS_FRAMES, ordinal)
    pictures.append(cv2.cvtColor(capture.read()[1], cv2.COLOR_BGR2RGB))
""",
    "cv2, grab": """
import cv2
start = time.process_time()
capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
pictures = []
for ordinal in range(ordinals[-1] + 1):
    capture.grab()
    if ordinal in ordinals:
        pictures.append(cv2.cvtColor(capture.retrieve()[1], cv2.COLOR_BGR2RGB))
""",
    "ffmpeg, select": """
import resource, subprocess
start = time.process_time()
chosen = "+".join(f"eq(n,{ordinal})" for ordinal in ordinals)
made = subprocess.run(
    ["ffmpeg", "-v", "error", "-threads", "1", "-i", path, "-vf", f"select='{chosen}'",
     "-vsync", "0", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
    stdout=subprocess.PIPE, check=True)
pictures = np.frombuffer(made.stdout, np.uint8).reshape(-1, 720, 1280, 3)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
start -= usage.ru_utime + usage.ru_stime
""",
}
SCAN = """
import sys
from functools import partial
from pathlib import Path
from pttool.core.video.decode import open_video
with open_video(Path(sys.argv[1])) as video:
    assert len(video.index) == int(sys.argv[2])
"""
IMPORT = """
import pttool.core.video.decode
"""


def main() -> None:
    """Make the films, run every row, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, help="the folder torchcodec and decord are in")
    asked = parser.parse_args()
    compileall.compile_dir(Path(__file__).parents[1] / "pttool", quiet=2)  # as installing does
    tools = _present(asked.peers)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spawned = multiprocessing.get_context("spawn").Process(target=make, args=(folder,))
        spawned.start()  # not here: a child's peak can't be below its parent's
        spawned.join()
        for film, frames in (("60s.mp4", FRAMES), ("10min.mp4", FRAMES * COPIES)):
            for k in SEGMENTS:
                against(folder / film, frames, k, tools, asked.peers)
            scanning(folder / film, frames)
        workers(folder)


def make(folder: Path) -> None:
    """Write the films of 60 s and 10 min, and a folder of small ones."""
    from tests.core.video.encoding import Film, encode

    options = {"preset": "veryfast", "crf": "20", "g": "250", "bf": "3"}
    encode(folder / "60s.mp4", Film(options=options, numbers=range(FRAMES), size=(1280, 720)))
    repeat(folder / "60s.mp4", folder / "10min.mp4")
    (folder / "small").mkdir()
    encode(folder / "small/0.mp4", Film(options=options, numbers=range(300), size=(320, 240)))
    for number in range(1, SMALL):
        shutil.copy(folder / "small/0.mp4", folder / f"small/{number}.mp4")


def repeat(source: Path, target: Path) -> None:
    """Write a film COPIES times, one after the other, into one file."""
    import av

    with av.open(source) as read, av.open(target, "w") as made:
        film = read.streams.video[0]
        stream = made.add_stream_from_template(film)
        assert film.duration is not None
        for number in range(COPIES):
            read.seek(0, stream=film)
            for packet in read.demux(film):
                if packet.pts is not None and packet.dts is not None:
                    packet.pts += number * film.duration
                    packet.dts += number * film.duration
                    packet.stream = stream
                    made.mux_one(packet)


def against(path: Path, frames: int, k: int, tools: list[str], peers: Path | None) -> None:
    """Print what the middles of `k` segments cost with each tool."""
    ordinals = [(2 * i + 1) * frames // (2 * k) for i in range(k)]
    numbers = [ordinal % FRAMES for ordinal in ordinals]
    runs: dict[str, list[Any]] = {tool: [] for tool in tools}
    for _ in range(ROUNDS):
        for tool in tools:
            runs[tool].append(run(tool, path, ordinals, peers))
    cpu = {tool: median(spent for spent, _, _ in runs[tool]) for tool in tools}
    print(f"{path.name}, K = {k}\n{'':<26}{'CPU s':>8}{'ratio':>8}{'MiB':>7}  right")
    for tool in tools:
        peak = max(peak for _, peak, _ in runs[tool])
        read = [read for _, _, read in runs[tool]]
        right = min(sum(a == b for a, b in zip(r, numbers, strict=True)) for r in read)
        ratio = f"{cpu[tool] / cpu['pttool']:.2f}x"
        print(f"{tool:<26}{cpu[tool]:>8.3f}{ratio:>8}{peak:>7.0f}  {right} of {k}")


def run(tool: str, path: Path, ordinals: list[int], peers: Path | None) -> Any:
    """Return the CPU seconds, the peak (MiB) and the numbers a tool's pictures show."""
    command = [sys.executable, "-c", HEAD + TOOLS[tool] + TAIL, str(path), json.dumps(ordinals)]
    done = subprocess.run(command, env=_environment(peers), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def scanning(path: Path, frames: int) -> None:
    """Print what the packet scan and the commands cost."""
    imports = cost([sys.executable, "-c", IMPORT], rounds=ROUNDS)
    scan = cost([sys.executable, "-c", SCAN, str(path), str(frames)], rounds=ROUNDS)
    print(f"{'packet scan alone':<26}{scan.cpu_s - imports.cpu_s:>8.3f}")
    _row("video info", cost([PTTOOL, "video", "info", str(path)], rounds=ROUNDS))
    for k, form in ((8, "npy"), (8, "jpg"), (25, "jpg")):
        what = ["video", "sample-tsn", "-k", str(k), "--format", form]
        with tempfile.TemporaryDirectory() as out:
            command = [PTTOOL, *what, str(path), "-o", out, "--force"]
            _row(f"sample-tsn -k {k}, {form}", cost(command, rounds=ROUNDS))
    print()


def workers(folder: Path) -> None:
    """Print how much faster two workers are than one on many small files."""
    walls, films = [], [str(path) for path in (folder / "small").iterdir()]
    for count in (1, 2):
        out = folder / f"out{count}"
        command = [PTTOOL, "video", "sample-tsn", *films, "-o", str(out), "-j", str(count)]
        spent = cost(
            command,
            rounds=ROUNDS,
            before=partial(shutil.rmtree, out, ignore_errors=True),
        )
        walls.append(spent.wall_s)
        print(f"{SMALL} files of 300 frames, -j {count}: {spent.wall_s:.2f} s of wall time")
    print(f"two workers are {walls[0] / walls[1]:.2f} times as fast on {os.cpu_count()} cores")


def _row(what: str, spent: Cost) -> None:
    print(f"{what:<26}{spent.cpu_s:>8.3f}{'':>8}{spent.peak_bytes / 2**20:>7.0f}")


def _present(peers: Path | None) -> list[str]:
    """Return the tools that are there."""
    present = []
    for tool in TOOLS:
        name = tool.split(",")[0]
        if name == "ffmpeg":
            there = shutil.which(name) is not None
        else:
            command = [sys.executable, "-c", f"import {name}"]
            done = subprocess.run(command, env=_environment(peers), stderr=subprocess.DEVNULL)
            there = done.returncode == 0
        present += [tool] if there else []
    missing = [tool for tool in TOOLS if tool not in present]
    print(f"not here: {'; '.join(missing)}\n" if missing else "", end="")
    return present


def _environment(peers: Path | None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(peers)} if peers else dict(os.environ)


if __name__ == "__main__":
    main()
