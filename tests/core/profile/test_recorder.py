"""What the recorder says of scripts whose times are known, being planted or their own stopwatch."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from pttool.core.profile.launch import Ended, Settings
from pttool.core.profile.reading import read_recording
from pttool.core.profile.recording import Process, Recording

from .running import ended, recorded, run

BATCHES = 16
# 8 samples of 5 ms each in a batch, 10 ms to collate it, 2 matrix products in a step, and a
# stopwatch around all that the script waits for.
PLANTED = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 128
    def __getitem__(self, i):
        time.sleep(0.005)
        return torch.ones(8)

def collate(samples):
    time.sleep(0.010)
    return torch.stack(samples)

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    def forward(self, x):
        time.sleep(0.004)
        return self.second(self.first(x))

if __name__ == "__main__":
    workers = int(sys.argv[1])
    model = Block()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight = torch.randn(300, 300)
    loader = DataLoader(Slow(), 8, collate_fn=collate, num_workers=workers)
    waited = computed = 0.0
    start = time.perf_counter()
    iterator = iter(loader)
    for x in iterator:
        waited += time.perf_counter() - start
        start = time.perf_counter()
        (model(x).sum() + (weight @ weight @ weight).sum()).backward()
        optimizer.step()
        computed += time.perf_counter() - start
        start = time.perf_counter()
    waited += time.perf_counter() - start  # for no batch, and the workers' end
    torch.save(model.state_dict(), "model.pt")
    print(waited, computed)
"""


@dataclass(frozen=True)
class Run:
    """A recorded run of the planted script, and what its stopwatch said."""

    ended: Ended
    recording: Recording
    main: Process
    waited_s: float
    folder: Path


@pytest.fixture(scope="module", params=[0, 2], ids=["in the main process", "2 workers"])
def planted(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    environment: dict[str, str],
) -> Run:
    """Run the planted script, with none or two workers."""
    cwd = tmp_path_factory.mktemp("planted")
    (cwd / "train.py").write_text(PLANTED)
    folder = cwd / "record"
    command = recorded(["train.py", str(request.param)], folder, Settings(shapes=True))
    done = run(command, cwd, environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    end = ended(folder)
    recording = read_recording(folder, end.pid)
    assert recording.main is not None
    assert recording.main.notes == ()
    return Run(end, recording, recording.main, float(done.stdout.split()[0]), folder)


def test_the_phases_sum_to_the_wall_time(planted: Run) -> None:
    main = planted.main
    around_s = main.start_s - planted.ended.start_s + planted.ended.end_s - main.end_s
    total_s = sum(main.phases_s.values()) + around_s
    assert total_s == pytest.approx(planted.ended.wall_s, rel=0.001)
    assert main.is_final
    assert main.phases_s["save"] > 0
    assert main.phase_calls["save"] == 1


def test_the_wait_is_what_the_script_s_stopwatch_says(planted: Run) -> None:
    waited_s = planted.main.phases_s["data_wait"]
    assert waited_s == pytest.approx(planted.waited_s, rel=0.02)
    (loader,) = planted.main.loaders
    assert (loader.dataset, loader.batches, loader.epochs) == ("Slow", BATCHES, 1)
    assert loader.batch_size == 8
    assert 0 < loader.iter_s + loader.wait_s <= waited_s
    assert loader.first_wait_s <= loader.wait_s


def test_fetching_is_counted_where_it_is_done(planted: Run) -> None:
    fetching = planted.recording.fetching
    (loader,) = planted.main.loaders
    assert sorted(each.worker for each in fetching) == (
        [float(each) for each in range(loader.workers)] or [-1.0]
    )
    assert sum(each.batches for each in fetching) == BATCHES
    assert sum(each.samples for each in fetching) == 128
    # At least what was planted: sleep never returns early.
    assert sum(each.collate_s for each in fetching) >= BATCHES * 0.010
    assert sum(each.fetch_s - each.collate_s for each in fetching) >= 128 * 0.005
    assert all(each.cpu_s < each.fetch_s / 2 for each in fetching)


def test_samples_name_the_planted_lines(planted: Run) -> None:
    workers = planted.recording.workers
    assert len(workers) == planted.main.loaders[0].workers
    lines = PLANTED.splitlines()
    seen = dict.fromkeys(range(1, len(lines) + 1), 0)
    for process in workers or (planted.main,):
        for stack in process.samples.stacks:
            leaf = stack.frames[-1] if stack.frames else None
            if leaf is not None and stack.phase == "data_wait" and leaf.file.endswith("train.py"):
                seen[leaf.line] += stack.count
    hot = sorted(seen, key=lambda line: -seen[line])
    assert [lines[line - 1].strip() for line in hot[:2]] == [
        "time.sleep(0.005)",
        "time.sleep(0.010)",
    ]


def test_steps_and_the_steady_ones(planted: Run) -> None:
    main = planted.main
    assert (main.steps, main.step_source, main.step_stride) == (BATCHES, "loader", 1)
    assert [step.index for step in main.step_rows] == list(range(BATCHES))
    steady = [step for step in main.step_rows if step.is_steady]
    # Not the first three, nor the window's three with the one that it is opened at the end of.
    assert [step.index for step in steady] == [3, *range(8, BATCHES)]
    assert main.steady.steps == len(steady)
    for phase, seconds in main.steady.phases_s.items():
        assert seconds == pytest.approx(sum(step.phases_s[phase] for step in steady))
    assert all(step.duration_s >= 0.004 for step in steady)


def test_a_window_holds_whole_steps(planted: Run) -> None:
    (window,) = planted.main.windows
    assert (window.first_step, window.steps) == (5, 3)
    assert window.trace is not None
    events = json.loads(window.trace.read_bytes())["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "cpu_op"]
    assert names.count("aten::mm") - names.count("aten::addmm") > 0
    shapes = [event["args"].get("Input Dims") for event in events if event["name"] == "aten::mm"]
    assert shapes.count([[300, 300], [300, 300]]) == 2 * 3


def test_modules_have_their_own_time(planted: Run) -> None:
    modules = {module.name: module for module in planted.main.modules}
    assert {name: module.type for name, module in modules.items()} == {
        "": "Block",
        "first": "Linear",
        "second": "Linear",
    }
    # The steps of the window, which slows them down, are left out.
    assert {module.calls for module in modules.values()} == {BATCHES - 3}
    assert planted.main.measured_steps == BATCHES - 3
    assert modules[""].self_s >= (BATCHES - 3) * 0.004
    assert modules["first"].self_s < modules[""].self_s
    (optimizer,) = planted.main.optimizers
    assert (optimizer.type, optimizer.steps, optimizer.parameters) == ("SGD", BATCHES, 4)


def test_what_runs_without_a_loader(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "infer.py").write_text(
        "import torch\nmodel = torch.nn.Linear(4, 4)\n"
        "with torch.inference_mode():\n    for _ in range(40):\n        model(torch.ones(2, 4))\n"
    )
    folder = tmp_path / "record"
    settings = Settings(hz=0, window_steps=2, windows=2)
    done = run(recorded(["infer.py"], folder, settings), tmp_path, environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    main = read_recording(folder, ended(folder).pid).main
    assert main is not None
    assert (main.step_source, main.steps) == ("forward", 39)
    assert [(window.first_step, window.steps) for window in main.windows] == [(5, 2), (11, 2)]
    assert main.samples.count == 0


def test_a_script_that_profiles_itself(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.Linear(4, 4)\n"
        "for step in range(20):\n"
        "    if step == 7:\n"
        "        own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])\n"
        "        own.start()\n"
        "    torch.addcdiv(torch.ones(2), torch.ones(2), torch.ones(2))\n"
        "    model(torch.ones(2, 4))\n"
        "own.stop()\n"
        "print(sum(each.count for each in own.key_averages() if each.key == 'aten::addcdiv'))\n"
    )
    folder = tmp_path / "record"
    done = run(recorded(["train.py"], folder), tmp_path, environment)
    assert (done.returncode, done.stdout) == (0, b"13\n"), done.stderr
    main = read_recording(folder, ended(folder).pid).main
    assert main is not None
    assert [note for note in main.notes if "profiles itself" in note] == list(main.notes)
    assert sum(window.steps for window in main.windows) == 1
