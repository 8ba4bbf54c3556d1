"""What `extract` writes is what torch.load finds in the original, and loads anywhere."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pttool.core.ckpt.extract import extract
from pttool.errors import InputError, UsageError
from tests.core.ckpt import oracle
from tests.core.ckpt.written import expected, loaded, same, state_dicts

CASES = Path(__file__).parents[2] / "cases" / "ckpt"
MIB = 1 << 20


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("name", state_dicts())
def test_the_weights_of_every_kind(
    name: str, compact: bool, corpus: dict[str, Path], tmp_path: Path
) -> None:
    wanted = expected(name, corpus[name])
    report = extract(corpus[name], tmp_path / "out.pt", compact=compact)
    found = loaded(tmp_path / "out.pt")
    assert report.summary["tensors"] == len(found)
    assert found.keys() <= wanted.keys()
    assert all(same(found[key], wanted[key]) for key in found)
    assert not any(
        tensor.requires_grad or type(tensor) is not torch.Tensor for tensor in found.values()
    )
    if not name.startswith(("yolo_like", "cycle")):  # which hold what is no weight, too
        assert found.keys() == wanted.keys()


@pytest.mark.parametrize("name", ["whole_module", "whole_parallel", "shared_modules", "yolo_like"])
@pytest.mark.parametrize("suffix", ["pt", "legacy.pt"])
def test_a_modules_are_those_of_its_state_dict(
    name: str, suffix: str, corpus: dict[str, Path], tmp_path: Path
) -> None:
    path = corpus[f"{name}.{suffix}"]
    module: Any = oracle.load(path)
    module = module["model"] if name == "yolo_like" else module
    module = module.module if isinstance(module, nn.DataParallel) else module
    extract(path, tmp_path / "out.pt")
    found, wanted = loaded(tmp_path / "out.pt"), module.state_dict()
    assert list(found) == list(wanted)
    assert all(same(found[key], wanted[key]) for key in wanted)


@pytest.mark.parametrize("name", ["views.pt", "views.legacy.pt"])
@pytest.mark.parametrize("compact", [False, True])
def test_what_shares_elements_still_does(
    name: str, compact: bool, corpus: dict[str, Path], tmp_path: Path
) -> None:
    extract(corpus[name], tmp_path / "out.pt", compact=compact)
    found = loaded(tmp_path / "out.pt")
    original: Any = oracle.load(corpus[name])
    for key in found:
        for other in found:
            assert _overlap(found[key], found[other]) == _overlap(original[key], original[other])
        if not compact:
            assert found[key].stride() == original[key].stride()
            assert found[key].storage_offset() == original[key].storage_offset()


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the runs of bytes from first to last element have one in common."""
    return bool(set(_reach(one)) & set(_reach(other)))


def _reach(tensor: torch.Tensor) -> range:
    if not tensor.numel():
        return range(0)
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return range(start, start + (last + 1) * tensor.itemsize)


@pytest.mark.parametrize("name", ["sparse.pt", "sparse.legacy.pt"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_tensors_are_kept(name: str, corpus: dict[str, Path], tmp_path: Path) -> None:
    extract(corpus[name], tmp_path / "out.pt", compact=True)
    found, original = torch.load(tmp_path / "out.pt", weights_only=True), oracle.load(corpus[name])
    assert isinstance(original, dict)
    assert list(found) == list(original)
    for key, tensor in original.items():
        assert found[key].layout == tensor.layout
        assert torch.equal(found[key].to_dense(), tensor.to_dense())


def test_what_cannot_be_written_is_left_out_by_name(tmp_path: Path) -> None:
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    torch.save(
        {"a": torch.ones(1), "q": quantized, "m": torch.ones(1, device="meta")}, tmp_path / "in.pt"
    )
    report = extract(tmp_path / "in.pt", tmp_path / "out.pt")
    assert list(loaded(tmp_path / "out.pt")) == ["a"]
    assert report.notes == ("1 quantized left out: q", "1 meta left out: m")


def test_the_report_tells_what_was_left_behind(corpus: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.pt"
    report = extract(corpus["training.pt"], out)
    original: Any = oracle.load(corpus["training.pt"])
    assert report.summary["dropped"] == [key for key in original if key != "state_dict"]
    assert report.summary["size_bytes"] == out.stat().st_size
    saved = corpus["training.pt"].stat().st_size - out.stat().st_size
    assert report.summary["saved_bytes"] == saved
    for item, (key, tensor) in zip(report.items, original["state_dict"].items(), strict=True):
        assert item["key"] == key
        assert item["shape"] == list(tensor.shape)
        assert item["dtype"] == str(tensor.dtype).removeprefix("torch.")
        assert (item["numel"], item["size_bytes"]) == (tensor.numel(), tensor.nbytes)


def test_a_key_and_a_glob_choose(corpus: dict[str, Path], tmp_path: Path) -> None:
    extract(corpus["training.pt"], tmp_path / "out.pt", key="ema", filter="module.bn.*")
    original: Any = oracle.load(corpus["training.pt"])
    found = loaded(tmp_path / "out.pt")
    wanted = {key: value for key, value in original["ema"].items() if ".bn." in key}
    assert list(found) == list(wanted)
    assert all(same(found[key], wanted[key]) for key in wanted)
    for key, glob in (("no", None), (None, "no*")):
        with pytest.raises(UsageError):
            extract(corpus["training.pt"], tmp_path / "none.pt", key=key, filter=glob)
    assert not (tmp_path / "none.pt").exists()


@pytest.mark.parametrize("name", ["values.pt", "whole_optimizer.pt", "quantized.pt", "odd_keys.pt"])
def test_a_file_without_weights_is_refused(
    name: str, corpus: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=str(corpus[name])):
        extract(corpus[name], tmp_path / "out.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_storage_that_is_too_short_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.arange(10.0)}, tmp_path / "in.pt")
    with zipfile.ZipFile(tmp_path / "in.pt") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "cut.pt", "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data[:36] if name.endswith("data/0") else data)
    with pytest.raises(InputError, match="a ends at byte 40 of a storage of 36"):
        extract(tmp_path / "cut.pt", tmp_path / "out.pt")
    assert not (tmp_path / "out.pt").exists()


def test_names_and_sizes_of_all_lengths(tmp_path: Path) -> None:
    """Numbers of one, two, four and more bytes, many dimensions, names that aren't ASCII."""
    large = torch.zeros(1).expand(300, 70_000, 3)
    state = {
        "ünï.日本": large,
        "": torch.ones(1),
        "d5": torch.ones(1, 2, 1, 2, 1),
        "s": torch.tensor(1),
    }
    torch.save(state, tmp_path / "in.pt")
    extract(tmp_path / "in.pt", tmp_path / "v1 日本.pt")
    found = torch.load(tmp_path / "v1 日本.pt", weights_only=True)
    assert list(found) == list(state)
    assert all(found[key].shape == state[key].shape for key in state)
    assert found["ünï.日本"].stride() == large.stride()


def test_a_slice_without_the_rest_of_its_storage(tmp_path: Path) -> None:
    """Case 04: a bug report of a file that a slice made large."""
    path = CASES / "04-slice-bloat" / "slice_bloat.pt"
    report = extract(path, tmp_path / "whole.pt")
    assert any("--compact" in note for note in report.notes)
    extract(path, tmp_path / "out.pt", compact=True)
    assert (tmp_path / "out.pt").stat().st_size < 10_000
    found, original = loaded(tmp_path / "out.pt"), torch.load(path)
    assert list(found) == list(original)
    assert all(same(found[key], original[key]) for key in original)


def test_modules_whose_classes_are_gone(tmp_path: Path) -> None:
    """Case 08."""
    folder = CASES / "08-whole-model-gone-class"
    extract(folder / "yolo_like.pt", tmp_path / "yolo.pt")
    found = loaded(tmp_path / "yolo.pt")
    assert len(found) == 10
    assert next(iter(found)) == "anc2"
    assert not {"anc", "stride"} & {key.rpartition(".")[2] for key in found}
    extract(folder / "whole_dp.pt", tmp_path / "dp.pt")
    found = loaded(tmp_path / "dp.pt")
    assert len(found) == 9
    assert not any(key.startswith("module.") for key in found)


@pytest.mark.parametrize("name", ["lightning.ckpt", "omega.ckpt"])
def test_a_lightning_checkpoint(name: str, tmp_path: Path) -> None:
    """Case 11: its hyper-parameters need classes that aren't there, its weights don't."""
    extract(CASES / "11-lightning-hparams" / name, tmp_path / "out.pt")
    assert len(loaded(tmp_path / "out.pt")) == 9


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is told in /proc there")
def test_memory_stays_bounded(tmp_path: Path) -> None:
    path, out = tmp_path / "in.pt", tmp_path / "out.pt"
    torch.save({"state_dict": {"a": torch.zeros(64 * MIB, dtype=torch.uint8)}}, path)
    code = (
        "import sys, pathlib; from pttool.core.ckpt.extract import extract;"
        "extract(*map(pathlib.Path, sys.argv[1:]));"
        "assert not {'torch', 'numpy'} & sys.modules.keys();"
        "print(pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code, path, out], capture_output=True, check=True)
    assert int(done.stdout) < 60 * 1024
    assert loaded(out)["a"].numel() == 64 * MIB
