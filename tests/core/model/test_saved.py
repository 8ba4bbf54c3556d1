"""Files that torch saved, told apart and read without running what they hold."""

import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pttool.core.model.parameters import Selection, params
from pttool.core.model.resolve import Resolved, resolve
from pttool.core.model.spec import InputSpec, SavedModel
from pttool.core.model.summary import summary
from pttool.errors import InputError


def _net() -> nn.Sequential:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 5))
    return net.eval()


PARAMETERS = 3 * 4 * 9 + 4 + 8 + 4 * 36 * 5 + 5
MACS = 6 * 6 * 4 * 27 + 4 * 36 * 5


def _resolved(path: Path, **options: Any) -> Resolved:
    return resolve(SavedModel(path), {}, name=path.name, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of each kind, written by torch."""
    folder, net = tmp_path_factory.mktemp("saved"), _net()
    torch.save(net.state_dict(), folder / "state_dict.pt")
    old = {"_use_new_zipfile_serialization": False}
    torch.save(net.state_dict(), folder / "legacy.pt", **old)
    torch.save({"epoch": 3, "state_dict": net.state_dict()}, folder / "checkpoint.pth")
    torch.save(net, folder / "whole.pt")
    torch.save({"epoch": 3}, folder / "no_tensors.pt")
    example = (torch.zeros(2, 3, 8, 8),)
    torch.export.save(torch.export.export(net, example), folder / "exported.pt2")
    torch.jit.trace(net, example).save(folder / "script.pt")  # type: ignore[no-untyped-call]
    return folder


pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


@pytest.mark.parametrize("name", ["state_dict.pt", "legacy.pt", "checkpoint.pth"])
def test_a_state_dict_has_parameters_but_no_forward(folder: Path, name: str) -> None:
    resolved = _resolved(folder / name)
    report = params(resolved, Selection())
    assert report.summary["params"] == PARAMETERS
    assert report.summary["buffers"] == 4 + 4 + 1
    assert [item["name"] for item in report.items][:2] == ["0.weight", "0.bias"]
    with pytest.raises(InputError, match="is a state dict"):
        summary(resolved, [InputSpec((3, 8, 8))])


@pytest.mark.parametrize("name", ["script.pt", "exported.pt2"])
def test_programs_run_without_their_python_code(folder: Path, name: str) -> None:
    report = summary(_resolved(folder / name), [InputSpec((3, 8, 8))], batch=2)
    assert report.failure is None
    assert (report.summary["params"], report.summary["macs"]) == (PARAMETERS, 2 * MACS)


def test_an_exported_program_knows_its_input(folder: Path) -> None:
    report = summary(_resolved(folder / "exported.pt2"), [])
    assert report.items[0]["input_shape"] == [2, 3, 8, 8]
    assert report.summary["batch"] == 2
    assert report.summary["macs"] == 2 * MACS


def test_a_safetensors_header_is_enough(folder: Path) -> None:
    """Written by hand as the format describes: a length, JSON, and the tensors' bytes."""
    header = {
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [0, 24]},
        "a.running_mean": {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]},
    }
    text = json.dumps(header).encode()
    path = folder / "weights.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(36))
    totals = params(_resolved(path), Selection()).summary
    assert (totals["params"], totals["param_bytes"], totals["buffers"]) == (12, 24, 3)
    path.write_bytes(len(text).to_bytes(8, "little") + text[:-9])
    with pytest.raises(InputError, match="header is damaged"):
        _resolved(path)


def test_a_pickled_module_runs_on_the_cpu_too(folder: Path) -> None:
    resolved = _resolved(folder / "whole.pt", trust_pickle=True, device="cpu")
    report = summary(resolved, [InputSpec((3, 8, 8))])
    assert (report.failure, report.summary["macs"]) == (None, MACS)


def test_a_script_lent_by_its_owner_comes_back_as_it_was(folder: Path) -> None:
    module = torch.jit.load(folder / "script.pt").train()  # type: ignore[no-untyped-call]
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    resolved = Resolved("script", "here", module, "meta")
    report = summary(resolved, [InputSpec((3, 8, 8))], batch=2)
    assert (report.failure, report.summary["device"]) == (None, "cpu")
    assert module.training
    assert all(torch.equal(buffer, before[name]) for name, buffer in module.named_buffers())


def test_a_pickled_module_needs_trust(folder: Path) -> None:
    with pytest.raises(InputError, match="can run any code") as refused:
        _resolved(folder / "whole.pt")
    assert refused.value.hint is not None
    assert "--trust-pickle" in refused.value.hint
    resolved = _resolved(folder / "whole.pt", trust_pickle=True)
    assert all(parameter.is_meta for parameter in resolved.module.parameters())
    assert summary(resolved, [InputSpec((3, 8, 8))]).summary["macs"] == MACS


class Evil:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Evil(mark), protocol=2))
    torch.save({"state_dict": Evil(mark)}, tmp_path / "evil2.pt")
    for name in ("evil.pt", "evil2.pt"):
        with pytest.raises(InputError, match="can run any code"):
            _resolved(tmp_path / name)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("no_tensors.pt", "without tensors"),
        ("missing.pt", "No such file"),
        ("empty.pt", "is empty"),
        ("text.pt", "nothing that torch saved"),
        ("cut.pt", "damaged or cut"),
        ("cut.pt2", "damaged or cut"),
        ("other.pt", "torch didn't write"),
    ],
)
def test_other_files_are_named_for_what_they_are(folder: Path, name: str, word: str) -> None:
    (folder / "empty.pt").touch()
    (folder / "text.pt").write_text("not a checkpoint")
    (folder / "cut.pt").write_bytes((folder / "state_dict.pt").read_bytes()[:3000])
    (folder / "cut.pt2").write_bytes((folder / "exported.pt2").read_bytes()[:5000])
    with zipfile.ZipFile(folder / "other.pt", "w") as archive:
        archive.writestr("letter.txt", "hello")
    with pytest.raises(InputError, match=word):
        _resolved(folder / name)
