"""However a script ends, its own code is returned and what was recorded until then is kept."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pttool.core.profile.launch import Ended
from pttool.core.profile.reading import read_recording
from pttool.core.profile.recording import Recording

from .running import ended, recorded, run

# Says once that it is on its way, by a file, so that no test waits for a time.
ENDLESS = """
import signal, sys, time, torch
from pathlib import Path
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.001)
        return torch.ones(4)

if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: print("checkpoint", flush=True))
    model = torch.nn.Linear(4, 4)
    end = time.monotonic() + float(sys.argv[1])
    while True:
        for x in DataLoader(Slow(), 8):
            model(x).sum().backward()
            if time.monotonic() > end:
                Path("ready").touch()
"""
FLUSHED_S = "2.5"  # since its start; files are 2 s old at most


@pytest.fixture
def endless(tmp_path: Path, environment: dict[str, str]) -> "Iterator[Child]":
    """Start the endless script, and yield it when it has trained for a while."""
    (tmp_path / "train.py").write_text(ENDLESS)
    child = Child(tmp_path, environment)
    child.wait_until_ready()
    yield child
    child.end()


class Child:
    """A recorded script in a process group of its own, as a shell starts it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self.process = subprocess.Popen(
            recorded(["train.py", FLUSHED_S], folder / "record"),
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        """Wait for the script's file."""
        while not (self._folder / "ready").exists():
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)

    def script(self) -> int:
        """Return the script's process id, which its record has in its name."""
        (path,) = (self._folder / "record").glob("fetch-*.bin")
        return int(path.stem.partition("-")[2])

    def outcome(self) -> tuple[int, bytes, bytes, Ended, Recording]:
        """Wait for the end; return exit code, stdout, stderr, and what was recorded."""
        stdout, stderr = self.process.communicate(timeout=60)
        end = ended(self._folder / "record")
        recording = read_recording(self._folder / "record", end.pid)
        return self.process.returncode, stdout, stderr, end, recording

    def end(self) -> None:
        """Leave nothing running."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def test_ctrl_c_ends_the_script_as_it_does_without(endless: Child) -> None:
    os.killpg(endless.process.pid, signal.SIGINT)
    code, stdout, stderr, end, recording = endless.outcome()
    assert (code, stdout, end.was_interrupted) == (130, b"", True)
    assert stderr.startswith(b'Traceback (most recent call last):\n  File "')
    assert stderr.endswith(b"\nKeyboardInterrupt\n")
    assert b"pttool" not in stderr
    assert recording.main is not None
    assert recording.main.is_final
    assert recording.main.steps >= 1


def test_a_killed_script_leaves_a_record_2_s_old_at_most(endless: Child) -> None:
    os.kill(endless.script(), signal.SIGKILL)
    code, _, stderr, end, recording = endless.outcome()
    assert (code, end.returncode, end.was_interrupted) == (137, -9, False)
    assert stderr == b""
    main = recording.main
    assert main is not None
    assert not main.is_final
    assert main.steps >= 1
    assert end.end_s - main.end_s < 3  # 2 s, and what a busy machine adds
    assert sum(main.phases_s.values()) == pytest.approx(main.end_s - main.start_s)
    (fetching,) = recording.fetching
    assert fetching.batches >= main.steps


def test_signals_to_the_parent_reach_the_script(endless: Child) -> None:
    endless.process.send_signal(signal.SIGUSR1)
    assert endless.process.stdout is not None
    assert endless.process.stdout.readline() == b"checkpoint\n"
    endless.process.send_signal(signal.SIGTERM)
    code, _, _, end, recording = endless.outcome()
    assert (code, end.returncode) == (143, -15)
    assert recording.main is not None
    assert not recording.main.is_final


KILLED = """
import os, signal, torch
from torch.utils.data import DataLoader, Dataset

class Deadly(Dataset):
    def __len__(self): return 100
    def __getitem__(self, i):
        if i == 60: os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(4)

if __name__ == "__main__":
    for x in DataLoader(Deadly(), 10, num_workers=1, multiprocessing_context="METHOD"):
        pass
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_killed_worker_leaves_its_counts(
    method: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "train.py").write_text(KILLED.replace("METHOD", method))
    done = run(recorded(["train.py"], tmp_path / "record"), tmp_path, environment)
    assert done.returncode == 1
    assert b"pttool" not in done.stderr
    recording = read_recording(tmp_path / "record", ended(tmp_path / "record").pid)
    assert recording.main is not None
    assert recording.main.is_final
    (fetching,) = recording.fetching
    assert (fetching.batches, fetching.samples, fetching.worker) == (6, 60, 0)
