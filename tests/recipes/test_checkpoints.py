"""A run that stops and resumes ends where one that didn't stop ends, bit for bit."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pttool.recipes
from pttool.core.recipes.book import book
from pttool.recipes import (
    Progress,
    load_checkpoint,
    save_checkpoint,
    seed_everything,
    warmup_cosine,
)

EPOCHS = 4


class Run:
    """A training that draws from every generator."""

    def __init__(self, seed: int) -> None:
        seeded = seed_everything(seed)
        self.generator = seeded.generator
        self.model = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = warmup_cosine(self.optimizer, 2, 40)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
        inputs = torch.randn(24, 4, generator=torch.Generator().manual_seed(0))
        dataset = TensorDataset(inputs, (inputs[:, 0] > 0).long())
        self.loader = DataLoader(dataset, 8, shuffle=True, generator=self.generator)

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds of it."""
        names = ("model", "optimizer", "scheduler", "scaler")
        return {name: getattr(self, name) for name in names}

    def train(self, epochs: range) -> list[float]:
        """Train some epochs, and return the losses of all steps."""
        return [loss for _ in epochs for loss in self._epoch()]

    def _epoch(self) -> Iterator[float]:
        for inputs, labels in self.loader:
            noisy = inputs * random.random() + np.random.rand()
            loss = nn.functional.cross_entropy(self.model(noisy), labels)
            self.optimizer.zero_grad()
            torch.autograd.backward(self.scaler.scale(loss))
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.scheduler.step()
            yield loss.item()

    def states(self) -> list[Tensor]:
        """Return the tensors of the model and the optimizer."""
        moments = [one for state in self.optimizer.state.values() for one in state.values()]
        return [*self.model.state_dict().values(), *moments]


@pytest.mark.parametrize("stop", range(1, EPOCHS))
def test_resuming_equals_the_straight_run(stop: int, tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    straight = Run(0)
    losses = straight.train(range(EPOCHS))
    first = Run(0)
    first.train(range(stop))
    save_checkpoint(path, **first.parts, epoch=stop, best_metric=0.5, generators=[first.generator])
    resumed = Run(99)
    progress = load_checkpoint(path, **resumed.parts, generators=[resumed.generator])
    assert progress == Progress(stop, 0.5)
    assert resumed.train(range(progress.epoch, EPOCHS)) == losses[3 * stop :]
    for a, b in zip(straight.states(), resumed.states(), strict=True):
        assert torch.equal(a, b)


def test_the_old_recipe_forgets_and_copies_the_wrong_way(tmp_path: Path) -> None:
    straight = Run(0)
    losses = straight.train(range(EPOCHS))
    first = Run(0)
    first.train(range(2))
    best, path = tmp_path / "checkpoint.pth.tar", tmp_path / "model_best.pth.tar"
    saved = {"model": first.model.state_dict(), "optimizer": first.optimizer.state_dict()}
    torch.save(saved, path)
    with pytest.raises(FileNotFoundError):
        shutil.copy(best, path)
    resumed, loaded = Run(0), torch.load(path)
    resumed.model.load_state_dict(loaded["model"])
    resumed.optimizer.load_state_dict(loaded["optimizer"])
    assert resumed.train(range(2, EPOCHS)) != losses[6:]


def test_the_best_is_kept_beside_the_last(tmp_path: Path) -> None:
    run = Run(0)
    for epoch, metric in enumerate([0.2, 0.9, 0.4], start=1):
        best = max(0.9, metric) if epoch > 1 else metric
        save_checkpoint(
            tmp_path / "last.pt", **run.parts, epoch=epoch, best_metric=best, is_best=metric == best
        )
    kept = load_checkpoint(tmp_path / "last-best.pt", run.model)
    assert kept == Progress(2, 0.9)
    assert load_checkpoint(tmp_path / "last.pt", run.model) == Progress(3, 0.9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last-best.pt", "last.pt"]


@pytest.mark.parametrize("fails_at", [0, 1])
def test_a_write_that_fails_leaves_what_there_was(
    fails_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, path = Run(0), tmp_path / "last.pt"
    save_checkpoint(path, **run.parts, epoch=1)
    before = path.read_bytes()
    real, calls = torch.save, []

    def failing(state: Any, stream: Any) -> None:
        calls.append(stream)
        real(state, stream)
        if len(calls) > fails_at:
            raise OSError("no room")

    monkeypatch.setattr(torch, "save", failing)
    with pytest.raises(OSError, match="no room"):
        save_checkpoint(path, **run.parts, epoch=2, is_best=True)
    assert path.read_bytes() == before
    kept = {"last.pt"} if fails_at == 0 else {"last.pt", "last-best.pt"}
    assert {file.name for file in tmp_path.iterdir()} == kept


SCHEDULERS = torch.optim.lr_scheduler


@pytest.mark.parametrize(
    "make",
    [
        lambda o: SCHEDULERS.OneCycleLR(o, 0.1, 10),
        lambda o: SCHEDULERS.ReduceLROnPlateau(o),
        lambda o: SCHEDULERS.SequentialLR(
            o, [SCHEDULERS.LinearLR(o), SCHEDULERS.CosineAnnealingLR(o, 9)], [2]
        ),
        lambda o: SCHEDULERS.MultiStepLR(o, [3, 6]),
        lambda o: SCHEDULERS.CyclicLR(o, 0.01, 0.1),
    ],
    ids=["one-cycle", "plateau", "sequential", "multi-step", "cyclic"],
)
@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step:UserWarning")
def test_the_schedulers_of_torch_load_with_weights_only(make: Any, tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    metric = np.float64(0.5)
    save_checkpoint(tmp_path / "a.pt", model, optimizer, scheduler, epoch=0, best_metric=metric)
    loaded = load_checkpoint(tmp_path / "a.pt", model, optimizer, scheduler)
    assert loaded == Progress(0, 0.5)


def test_what_is_asked_and_not_there_is_told_before_anything_changes(tmp_path: Path) -> None:
    run = Run(0)
    save_checkpoint(tmp_path / "a.pt", run.model, epoch=1)
    other = Run(1)
    before = [tensor.clone() for tensor in other.states()]
    with pytest.raises(ValueError, match="holds no optimizer and no scheduler"):
        load_checkpoint(tmp_path / "a.pt", other.model, other.optimizer, other.scheduler)
    with pytest.raises(ValueError, match="the states of 0 generators, not 1"):
        load_checkpoint(tmp_path / "a.pt", other.model, generators=[other.generator])
    assert all(torch.equal(a, b) for a, b in zip(before, other.states(), strict=True))


def test_numbers_of_numpy_become_pythons_and_other_objects_are_refused(tmp_path: Path) -> None:
    path, model = tmp_path / "a.pt", nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=np.float64(0.1))
    scheduler = SCHEDULERS.MultiStepLR(optimizer, [3])
    save_checkpoint(path, model, optimizer, scheduler, epoch=np.int64(3))  # type: ignore[arg-type]
    assert load_checkpoint(path, model, optimizer, scheduler) == Progress(3, None)
    assert type(scheduler.state_dict()["base_lrs"][0]) is float
    before = path.read_bytes()
    optimizer.param_groups[0]["tag"] = Path()
    with pytest.raises(ValueError, match=r"torch\.load would refuse what it holds: pathlib"):
        save_checkpoint(path, model, optimizer, epoch=4)
    assert path.read_bytes() == before


def test_other_groups_of_the_optimizer_leave_the_model_as_it_was(tmp_path: Path) -> None:
    run, other = Run(0), Run(1)
    save_checkpoint(tmp_path / "a.pt", run.model, run.optimizer, epoch=1)
    before = [tensor.clone() for tensor in other.states()]
    head = torch.optim.SGD(other.model[3].parameters(), lr=0.1)
    with pytest.raises(ValueError, match=r"has groups of \[6\] tensors, not of \[2\]"):
        load_checkpoint(tmp_path / "a.pt", other.model, head)
    assert all(torch.equal(a, b) for a, b in zip(before, other.states(), strict=True))


def test_the_page_of_the_recipe_resumes_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run as it is pasted, once through and once stopped after its fourth epoch."""
    code = compile(book()[35].code, "page 36", "exec")
    finals = {}
    for name in ("straight", "stopped"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        if name == "stopped":
            with monkeypatch.context() as patched:
                patched.setattr(pttool.recipes, "save_checkpoint", _stopped_after_epoch_4)
                with pytest.raises(KeyboardInterrupt):
                    exec(code, {})
            assert torch.load("last.pt")["epoch"] == 4
        exec(code, {})
        finals[name] = torch.load("last.pt")
    straight, stopped = (finals[name]["model"] for name in ("straight", "stopped"))
    assert all(torch.equal(straight[key], stopped[key]) for key in straight)
    assert finals["straight"]["random"]["python"] == finals["stopped"]["random"]["python"]


def _stopped_after_epoch_4(path: Path, **given: Any) -> None:
    save_checkpoint(path, **given)
    if given["epoch"] == 4:
        raise KeyboardInterrupt
