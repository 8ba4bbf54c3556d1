"""`pttool ckpt` as users run it, and the public bug reports it must not repeat."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pttool.core.ckpt.files.journal import Change, Journal, encode, journal_path
from tests.conftest import PTTOOL, Completed, Program, Pttool, assert_refused
from tests.core.ckpt.corpus import KINDS

CASES = Path(__file__).parents[1] / "cases" / "ckpt"


def _json(done: Completed, code: int = 0) -> dict[str, Any]:
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout, parse_constant=pytest.fail)
    return document


def _case(name: str) -> str:
    return str(CASES / name)


def test_a_lightning_checkpoint_whose_classes_are_not_installed(pttool: Pttool) -> None:
    found = _json(pttool("ckpt", "inspect", _case("11-lightning-hparams/lightning.ckpt"), "--json"))
    values = {item["key"]: item["value"] for item in found["items"] if item["kind"] == "value"}
    assert values["epoch"] == 1
    assert values["global_step"] == 10
    assert values["hyper_parameters.lr"] == 0.001
    assert values["hyper_parameters.ns.a"] == 1
    summary = found["summary"]
    assert summary["tensors"] == 28
    assert summary["framework_versions"] == {"pytorch-lightning_version": "2.4.0"}
    assert summary["weights_only"] == "no, because of argparse.Namespace, pathlib.PosixPath"
    assert summary["unknown_globals"] == ["argparse.Namespace", "pathlib.PosixPath"]
    omega = _json(pttool("ckpt", "inspect", _case("11-lightning-hparams/omega.ckpt"), "--json"))
    assert omega["summary"]["tensors"] == 9
    assert any("omegaconf" in name for name in omega["summary"]["unknown_globals"])


def test_a_model_whose_class_is_gone(pttool: Pttool, tmp_path: Path) -> None:
    case = _case("08-whole-model-gone-class/yolo_like.pt")
    found = _json(pttool("ckpt", "inspect", case, "--json"))
    assert found["summary"]["tensors"] == 12
    assert "gone_pkg.models.Det" in found["summary"]["unknown_globals"]
    assert pttool("ckpt", "extract", case, "-o", "sd.pt").returncode == 0
    weights = torch.load(tmp_path / "sd.pt", weights_only=True)
    assert len(weights) == 10
    assert next(iter(weights)) == "anc2"
    assert not {"anc", "stride"} & set(weights)
    parallel = _case("08-whole-model-gone-class/whole_dp.pt")
    assert pttool("ckpt", "extract", parallel, "-o", "dp.pt").returncode == 0
    weights = torch.load(tmp_path / "dp.pt", weights_only=True)
    assert len(weights) == 9
    assert not any(name.startswith("module.") for name in weights)


def test_a_slice_that_drags_its_storage_along(pttool: Pttool, tmp_path: Path) -> None:
    case = _case("04-slice-bloat/slice_bloat.pt")
    done = pttool("ckpt", "inspect", case, "--json")
    (item,) = _json(done)["items"]
    assert (item["shape"], item["size_bytes"]) == ([2, 1000], 8000)
    assert _json(done)["summary"]["stored_bytes"] == 4_000_000
    assert "99.8 % of the stored bytes are reachable by no tensor" in done.stderr
    assert pttool("ckpt", "extract", case, "--compact", "-o", "small.pt").returncode == 0
    assert (tmp_path / "small.pt").stat().st_size < 10_000
    small, big = torch.load(tmp_path / "small.pt"), torch.load(case)
    assert torch.equal(small["big_slice"], big["big_slice"])


def test_a_damaged_record_names_its_tensor(pttool: Pttool) -> None:
    done = pttool("ckpt", "verify", _case("06-bitflip/bitflip.pt"), "--json")
    damaged = [item for item in _json(done, 1)["items"] if item["status"] == "damaged"]
    assert [(item["record"], item["tensors"]) for item in damaged] == [("data/0", ["w"])]
    assert "data/0 (tensor w)" in done.stderr
    assert pttool("ckpt", "verify", _case("06-bitflip/good.pt")).returncode == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("05-truncated/empty.pt", "empty"),
        ("05-truncated/half.pt", "end record is missing"),
        ("05-truncated/tail.pt", "end record is missing"),
        ("05-truncated/zeros.pt", "zero bytes"),
        ("14-not-a-checkpoint/gz.pt", "gunzip"),
        ("14-not-a-checkpoint/html.pt", "HTML page"),
        ("14-not-a-checkpoint/lfs.pt", "git lfs pull"),
    ],
)
def test_what_is_no_checkpoint_is_said_by_name(pttool: Pttool, name: str, words: str) -> None:
    for verb in (["inspect"], ["scan"], ["verify"], ["extract", "-o", "out.pt"]):
        assert_refused(pttool("ckpt", *verb, _case(name)), 3, words)


def test_a_distributed_checkpoint_is_listed_without_torch(pttool: Pttool) -> None:
    found = _json(pttool("ckpt", "inspect", _case("13-dcp-directory/dcp"), "--json"))
    weight = next(item for item in found["items"] if item["key"] == "model.conv.weight")
    assert weight["shape"] == [8, 3, 3, 3]
    (chunk,) = weight["chunks"]
    assert chunk["file"] == "__0_0.distcp"
    assert chunk["offsets"] == [0, 0, 0, 0]


def test_stdin_lists_and_one_bad_file_among_good_ones(pttool: Pttool, tmp_path: Path) -> None:
    good, bad = tmp_path / "good one.pt", tmp_path / "bad.pt"
    torch.save({"w": torch.ones(2)}, good)
    bad.write_text("<html>")
    (tmp_path / "list").write_bytes(f"{good.name}\0{bad.name}\0".encode())
    done = pttool("ckpt", "inspect", "--files-from", "list", "-0", "--ndjson")
    assert done.returncode == 3
    assert [json.loads(line)["file"] for line in done.stdout.splitlines()] == ["good one.pt"]
    assert "bad.pt" in done.stderr
    with good.open("rb") as stream:
        piped = subprocess.run(
            ["sh", "-c", f"cat | '{PTTOOL}' ckpt inspect - --json"],
            stdin=stream,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    assert [item["key"] for item in _json(piped)["items"]] == ["w"]


def test_an_output_is_never_half_written_nor_an_input_lost(pttool: Pttool, tmp_path: Path) -> None:
    source = tmp_path / "gpu.pt"
    shutil.copy(CASES / "02-cuda-on-cpu-box" / "train_cuda.pt", source)
    before = source.read_bytes()
    assert_refused(pttool("ckpt", "convert-cpu", "gpu.pt"), 2, "--in-place")
    assert_refused(pttool("ckpt", "convert-cpu", "gpu.pt", "-o", "gpu.pt", "--force"), 2, "input")
    (tmp_path / "there.pt").write_text("mine")
    assert_refused(pttool("ckpt", "convert-cpu", "gpu.pt", "-o", "there.pt"), 2, "--force")
    assert (tmp_path / "there.pt").read_text() == "mine"
    assert pttool("ckpt", "convert-cpu", "gpu.pt", "--dry-run").returncode == 0
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu.pt", "there.pt"]
    source.chmod(0o640)
    assert pttool("ckpt", "convert-cpu", "gpu.pt", "--in-place").returncode == 0
    assert len(source.read_bytes()) == len(before)
    assert source.stat().st_mode & 0o777 == 0o640
    torch.load(source, weights_only=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu.pt", "there.pt"]


def test_a_full_disk_leaves_nothing(pttool: Pttool, tmp_path: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("there is no /dev/full")
    torch.save({"w": torch.ones(2)}, tmp_path / "model.pt")
    for verb in ("extract", "convert-cpu", "to-safetensors"):
        assert_refused(pttool("ckpt", verb, "model.pt", "-o", "/dev/full"), 4, "No space left")


def test_programs_are_refused_by_the_verbs_that_rewrite(pttool: Pttool, tmp_path: Path) -> None:
    script = KINDS["script/traced.pt"].write(tmp_path)
    for verb in ("convert-cpu", "strip-dataparallel"):
        refused = pttool("ckpt", verb, str(script), "-o", "out.pt")
        assert_refused(refused, 3, "TorchScript", "torch.jit.load")
    assert not (tmp_path / "out.pt").exists()


def test_a_file_is_not_run_that_is_only_looked_at(program: Program, tmp_path: Path) -> None:
    """The pickle would write a file; scan says so, and nothing is written."""
    hostile = b"cposix\nsystem\n(S'touch ran'\ntR."
    (tmp_path / "hostile.pkl").write_bytes(b"\x80\x02" + hostile)
    for verb in ("inspect", "scan", "verify"):
        program("ckpt", verb, "hostile.pkl")
    done = program("ckpt", "scan", "hostile.pkl", "--json")
    (item,) = _json(done, 1)["items"]
    assert item["verdict"] == "DANGEROUS"
    assert item["globals"] == ["posix.system"]
    assert not (tmp_path / "ran").exists()


def test_the_weights_that_a_model_would_load(pttool: Pttool, tmp_path: Path) -> None:
    weights = {"weight": torch.ones(2, 3), "bias": torch.ones(2)}
    (tmp_path / "net.py").write_text("import torch\nNet = lambda: torch.nn.Linear(3, 2)\n")
    torch.save({f"module.{name}": tensor for name, tensor in weights.items()}, tmp_path / "dp.pt")
    done = pttool("ckpt", "match", "dp.pt", "net.py:Net", "--json")
    assert _json(done, 1)["summary"]["missing"] == 2
    assert "strip-dataparallel" in done.stderr
    assert pttool("ckpt", "strip-dataparallel", "dp.pt", "-o", "plain.pt").returncode == 0
    matched = pttool("ckpt", "match", "plain.pt", "net.py:Net", "--json")
    assert _json(matched)["summary"]["matched"] == 2


def test_a_difference_in_values(pttool: Pttool, tmp_path: Path) -> None:
    torch.save({"epoch": 1, "w": torch.tensor([1.0, 2.0])}, tmp_path / "a.pt")
    torch.save({"epoch": 2, "w": torch.tensor([1.0, 2.5])}, tmp_path / "b.pt")
    found = _json(pttool("ckpt", "diff", "a.pt", "b.pt", "--values", "--json"), 1)
    by_key = {item["key"]: item for item in found["items"]}
    assert by_key["w"]["max_abs_diff"] == 0.5
    assert (by_key["epoch"]["a"], by_key["epoch"]["b"]) in ((1, 2), ("1", "2"))
    assert pttool("ckpt", "diff", "a.pt", "a.pt", "--values").returncode == 0


def test_every_verb_draws_its_table(pttool: Pttool, tmp_path: Path) -> None:
    """Columns and footers name what the report holds."""
    torch.save({"w": torch.ones(2), "v": torch.ones(2)}, tmp_path / "m.pt")
    verbs = [
        ["inspect", "m.pt", "--tree", "--stats"],
        ["convert-cpu", "m.pt", "--dry-run", "-o", "not-there.pt"],
        ["strip-dataparallel", "m.pt", "--dry-run"],
        ["scan", "m.pt"],
        ["verify", "m.pt", "--all"],
        ["diff", "m.pt", "m.pt", "--all"],
        ["extract", "m.pt", "-o", "w.pt"],
        ["to-safetensors", "m.pt", "-o", "m.safetensors"],
        ["to-torch", "m.safetensors", "-o", "t.pt"],
        ["cast", "m.pt", "--dtype", "bf16", "-o", "c.pt"],
        ["shard", "m.pt", "--max-size", "8B", "-o", "shards"],
        ["merge", "shards", "-o", "merged.pt"],
    ]
    for args in verbs:
        done = pttool("ckpt", *args)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    merged = torch.load(tmp_path / "merged.pt", weights_only=True)
    assert {name: tensor.tolist() for name, tensor in merged.items()} == {
        "v": [1.0, 1.0],
        "w": [1.0, 1.0],
    }


def test_names_that_are_spelled_alike_have_figures_of_their_own(
    pttool: Pttool, tmp_path: Path
) -> None:
    torch.save({"a.b": torch.ones(2), "a": {"b": 7 * torch.ones(2)}}, tmp_path / "m.pt")
    found = _json(pttool("ckpt", "inspect", "m.pt", "--stats", "--json"))
    assert [item["max"] for item in found["items"]] == [1.0, 7.0]


def test_several_files_are_summed_up_and_told_apart(pttool: Pttool, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    torch.save(Path("/x"), tmp_path / "b.pt")
    summary = _json(pttool("ckpt", "inspect", "a.pt", "b.pt", "--json"))["summary"]
    assert summary["tensors"] == 1
    by_file = {found["file"]: found["weights_only_loadable"] for found in summary["files"]}
    assert by_file == {"a.pt": True, "b.pt": False}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_whoever_ends_it_no_temporary_file_stays(tmp_path: Path, ending: signal.Signals) -> None:
    """A scheduler and a closed terminal send other signals than Ctrl-C."""
    with (tmp_path / "big.pt").open("wb") as stream:
        torch.save({"w": torch.zeros(1 << 26)}, stream)
    process = subprocess.Popen(
        [PTTOOL, "ckpt", "cast", "big.pt", "--dtype", "fp64", "-o", "out.pt"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not list(tmp_path.glob(".pttool-*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(ending)
    assert process.wait(60) == 128 + ending
    assert [path.name for path in tmp_path.iterdir()] == ["big.pt"]


def test_an_interrupted_change_is_undone_and_said(pttool: Pttool, tmp_path: Path) -> None:
    source = tmp_path / "m.pt"
    torch.save({"w": torch.ones(2)}, source)
    before = source.read_bytes()
    patch = Change(100, before[100:104], b"abcd")
    source.write_bytes(before[:100] + b"ab" + before[102:])
    journal_path(source).write_bytes(encode(Journal(len(before), (patch,))))
    done = pttool("ckpt", "inspect", "m.pt")
    assert done.returncode == 0
    assert "had been cut short: it is undone" in done.stderr
    assert source.read_bytes() == before


def test_the_weights_are_never_chosen_by_chance(pttool: Pttool, tmp_path: Path) -> None:
    weights = {"l.weight": torch.ones(2), "l.bias": torch.ones(1)}
    cases = {
        "one.pt": ({"unet": weights, "step": torch.tensor(3)}, ["l.weight", "l.bias"]),
        "tree.pt": (
            {"model": {"enc": weights, "s": torch.ones(1)}},
            ["enc.l.weight", "enc.l.bias", "s"],
        ),
    }
    for name, (saved, wanted) in cases.items():
        torch.save(saved, tmp_path / name)
        assert pttool("ckpt", "extract", name, "-o", f"out-{name}").returncode == 0
        assert list(torch.load(tmp_path / f"out-{name}", weights_only=True)) == wanted
    torch.save({"G": weights, "D": weights, "step": torch.tensor(1)}, tmp_path / "gan.pt")
    assert_refused(pttool("ckpt", "extract", "gan.pt", "-o", "g.pt"), 3, "several", "--key G")
    assert pttool("ckpt", "extract", "gan.pt", "--key", "D", "-o", "d.pt").returncode == 0


def test_lists_that_name_nothing_or_are_of_another_kind(pttool: Pttool, tmp_path: Path) -> None:
    (tmp_path / "nul").write_bytes(b"a.pt\0b.pt\0")
    (tmp_path / "empty").write_bytes(b"")
    assert_refused(pttool("ckpt", "scan", "--files-from", "nul"), 2, "add -0")
    assert_refused(pttool("ckpt", "scan", "--files-from", "empty"), 2, "names no files")


def test_what_the_note_records_of_a_zip_say_names_no_tensor(pttool: Pttool, tmp_path: Path) -> None:
    """The keys of a ParameterList are what torch writes into its own small records."""
    torch.save({"0": torch.ones(2), "1": torch.ones(3), "64": torch.ones(1)}, tmp_path / "l.pt")
    assert pttool("ckpt", "extract", "l.pt", "-o", "o.pt").returncode == 0
    assert list(torch.load(tmp_path / "o.pt")) == ["0", "1", "64"]


def test_a_private_file_stays_private(pttool: Pttool, tmp_path: Path) -> None:
    torch.save({"module.w": torch.ones(2)}, tmp_path / "m.pt")
    (tmp_path / "m.pt").chmod(0o600)
    for verb, out in (
        ("convert-cpu", "c.pt"),
        ("strip-dataparallel", "s.pt"),
        ("extract", "e.pt"),
        ("to-safetensors", "t.safetensors"),
    ):
        assert pttool("ckpt", verb, "m.pt", "-o", out).returncode == 0
        assert (tmp_path / out).stat().st_mode & 0o777 == 0o600


def test_numbers_of_numpy_are_shown(pttool: Pttool, tmp_path: Path) -> None:
    torch.save({"best": np.float64(0.5), "step": np.int64(7)}, tmp_path / "m.pt")
    found = _json(pttool("ckpt", "inspect", "m.pt", "--json"))
    assert {item["key"]: item["value"] for item in found["items"]} == {"best": 0.5, "step": 7}
