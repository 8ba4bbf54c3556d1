"""torch.compile compiles under the recorder what it compiles without: frames, graphs, breaks."""

import sys
from pathlib import Path

import pytest

from pttool.core.profile.reading import read_recording

from .running import ended, recorded, run

# Each way for Dynamo to meet a hooked function: as the top frame, inlined, resumed after a break.
SCRIPT = """
import torch
from torch import nn
from torch._dynamo.utils import counters, guard_failures

class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.inner.register_forward_hook(lambda module, inputs, output: output + 1)
    def forward(self, x): return self.inner(x)

class OwnCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
    def __call__(self, x): return super().__call__(x) * 2
    def forward(self, x): return self.inner(x)

class Breaking(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
    def forward(self, x):
        y = self.inner(x)
        torch._dynamo.graph_break()
        return self.inner(y)

model = nn.Sequential(nn.Linear(8, 8), Hooked(), OwnCall(), Breaking())
in_place = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
in_place.compile(backend="eager")
compiled = torch.compile(model, backend="eager")
parameters = [*model.parameters(), *in_place.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
step = torch.compile(lambda: optimizer.step(), backend="eager")
both = torch.compile(lambda x: compiled(x) + in_place(x), backend="eager")

@torch.compile(backend="eager")
def gradient(x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad((x * x).sum(), x)[0]

for count in range(12):
    x = torch.full((4, 8), float(count))
    loss = (compiled(x) + in_place(x)).sum() + both(x).sum()
    loss.backward()
    step()
    gradient(x)
print(torch.compile(lambda x: in_place(x), backend="eager", fullgraph=True)(x).shape)
print({name: dict(counts) for name, counts in counters.items()}, len(guard_failures))
"""


@pytest.mark.verify
def test_dynamo_sees_no_difference(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    plain = run([sys.executable, "script.py"], tmp_path, environment)
    traced = run(recorded(["script.py"], tmp_path / "record"), tmp_path, environment)
    assert plain.returncode == traced.returncode == 0, traced.stderr
    assert traced.stdout == plain.stdout
    main = read_recording(tmp_path / "record", ended(tmp_path / "record").pid).main
    assert main is not None
    assert main.notes == ()
    assert main.torch is not None
    assert main.torch.graphs > 0
    assert f"'unique_graphs': {main.torch.graphs}" in plain.stdout.decode()
