"""What is recorded doesn't grow with the length of a run."""

import sys
from pathlib import Path

import pytest

from pttool.core.profile.reading import read_recording

from .running import ended, recorded, run

STEPS = 10_000
LONG = """
import resource, torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for (x,) in DataLoader(TensorDataset(torch.ones(10_000, 8)), batch_size=1):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.verify
def test_memory_and_files_stay_small(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "script.py").write_text(LONG)
    plain = run([sys.executable, "script.py"], tmp_path, environment)
    folder = tmp_path / "record"
    traced = run(recorded(["script.py"], folder), tmp_path, environment)
    assert traced.returncode == 0, traced.stderr
    assert int(traced.stdout) <= 1.15 * int(plain.stdout) + 60e6
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 20e6
    main = read_recording(folder, ended(folder).pid).main
    assert main is not None
    assert main.steps == STEPS
    assert len(main.step_rows) <= 1024
    indices = [step.index for step in main.step_rows]
    assert indices == list(range(0, STEPS, main.step_stride))
    assert main.steady.steps == STEPS - 3 - 4  # the first, and those that the window touched
